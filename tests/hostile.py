"""Texts that try to become markup, a script, a formula or another line, for everything that shows text."""

#: Each sets window.hurt where it runs.
HOSTILE = [
    "<script>window.hurt=1</script>",
    "</script><script>window.hurt=1</script>",
    "</td></tr></table><script>window.hurt=1</script>",
    "</title></style></textarea></noscript><script>window.hurt=1</script>",
    "--><script>window.hurt=1</script><!--",
    "]]><script>window.hurt=1</script>",
    "<img src=x onerror=window.hurt=1>",
    "<img src=x onerror='window.hurt=1'>",
    '"><img src=x onerror=window.hurt=1>',
    "'><img src=x onerror=window.hurt=1>",
    '" onmouseover="window.hurt=1" autofocus onfocus="window.hurt=1',
    "<svg onload=window.hurt=1>",
    "<svg><script>window.hurt=1</script></svg>",
    "<svg><animate onbegin=window.hurt=1 attributeName=x dur=1s>",
    "<details open ontoggle=window.hurt=1>x</details>",
    "<iframe srcdoc='<script>parent.hurt=1</script>'></iframe>",
    "<iframe src='javascript:parent.hurt=1'></iframe>",
    "<video><source onerror=window.hurt=1></video>",
    "<style>@import 'javascript:window.hurt=1'</style><input autofocus onfocus=window.hurt=1>",
    "<a href='javascript:window.hurt=1' id=hurt>x</a>",
    "&lt;script&gt;window.hurt=1&lt;/script&gt;",
    "\x00<script>window.hurt=1</script>\ufffe",
    "{{constructor.constructor('window.hurt=1')()}} ${window.hurt=1} $\\frac$ \u202e<script>window.hurt=1</script>",
    "<math><mtext><table><mglyph><style><img src=x onerror=window.hurt=1></style></mglyph></table></mtext></math>",
]
