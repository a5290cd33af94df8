"""Notifications of the service, in any web framework or in a notebook.

In a web application:

    if not webhooks.verify(request.headers, "X-Webhook-Secret", secret):
        abort(401)
    notification = webhooks.parse(request.body)

In a notebook:

    with webhooks.listen(client=client) as inbox:
        client.submit("talk.wav", **inbox.options())
        transcript = inbox.get(timeout=60).transcript()

A notification may come more than once and in any order; an inbox gives each once.
"""

from voxframe.service.inbox import Inbox, listen
from voxframe.service.webhook import Headers, Notification, parse, verify

__all__ = ["Headers", "Inbox", "Notification", "listen", "parse", "verify"]
