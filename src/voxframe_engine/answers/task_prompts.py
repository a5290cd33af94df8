"""Kinds of prompts: those that quoted sentences can answer, and those that need a language model."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

#: What quoting can do.
TaskKind: TypeAlias = Literal["summary", "action-items", "question"]


def _any_of(*patterns: str) -> str:
    """Return a pattern for one of several patterns."""
    return f"(?:{'|'.join(patterns)})"


_RECORDING = r"(?:transcript|call|recording|talk|conversation|meeting|interview|text|discussion)s?"
_WISH = r"(?:i|we)(?: want| need|'d like| would like|'d love)"
#: What may come before the request itself.
_OPENING = _any_of(
    r"ok(?:ay)?|hi|hello|please|pls|now|then|so|and|just|kindly|quickly|briefly|help me(?: to)?|try to|let's",
    r"(?:can|could|would|will) you",
    rf"{_WISH}(?: you)? to",
    r"(?:read|go|look)(?: through| over)? (?:the|this) \w+ and",
    rf"(?:from|in|based on|according to|using|for|after reading|looking at) \w+ (?:\w+ )?{_RECORDING}",
)
_START = rf"^\W*(?:{_OPENING}[,:]? )*"
_SUMMARY = _any_of(
    r"summar(?:y|ies)|overviews?|recaps?|synopsis|outline|abstract|gist|essence|tl;?dr|highlights?|takeaways?",
    r"(?:key|main|important|central|essential) (?:points?|messages?|ideas?|takeaways?|topics|statements|arguments)",
    r"bullets?(?: points)?|summari[sz](?:e|ing)|sum (?:it |this |that |\w+ \w+ )?up|recapitulate|condense|boil",
)
_ACTIONS = _any_of(
    r"action (?:items?|points?|list)|to-?do(?: list|s)?|next steps?|follow[- ]?ups?|commitments?|promises|assignments?",
    r"(?:open|outstanding|remaining) (?:tasks?|items?)|tasks? (?:that|which|for|to)|deliverables",
)
_GIVE = _any_of(
    r"write(?: up| down)?|give|provide|create|make|prepare|generate|produce|draft|compile|do|get|return|show|list|send",
    r"extract|pull(?: out)?|collect|gather|need|want|find|note|pick out|tell|have|identify|name|read out|output|see",
    _WISH,
    r"i'm (?:looking for|after)|looking for|what i need is",
)
_DETERMINER = _any_of(
    r"an?|the|all|any|every|each|of|our|my|their|his|her|this|these|those|me|us|top|most|single|lists?|\d+",
    r"one|two|three|four|five|six|seven|eight|nine|ten|\w+-(?:sentence|line|point|bullet|paragraph)|sentence|line",
    r"short|brief|concise|quick|tight|compact|rough|good|complete|full|detailed|executive|general|high-?level|plain",
    r"simple|neutral|factual|bulleted|bullets?|important|agreed|open|remaining|outstanding|meeting|call|conversation",
)
#: Texts that would have to be written.
_TEXT = _any_of(
    r"e-?mails?|letters?|memos?|tweets?|posts?|articles?|poems?|haikus?|songs?|lyrics|limericks?|raps?|jokes?",
    r"stor(?:y|ies)|fairy tales?|essays?|press releases?|newsletters?|slides?|presentations?|scripts?|sketch(?:es)?",
    r"json|csv|xml|ya?ml|html|latex|markdown|tables?|spreadsheets?|diagrams?|charts?|graphs?|mind ?maps?|code|sql",
    r"python|quiz(?:zes)?|flash ?cards?|speech|slogans?|taglines?|captions?|titles?|headlines?|repl(?:y|ies)|response",
    r"advice|recommendations?|ideas for|alternatives?|translations?|versions?|paraphrases?|scores?|ratings?|grades?",
    r"sentiment|persona|pitch|ad|advert(?:isement)?s?|faqs?|agenda",
)
_LANGUAGE = _any_of(
    r"arabic|bengali|bulgarian|cantonese|catalan|chinese|croatian|czech|danish|dutch|estonian|farsi|finnish|french",
    r"gaelic|german|greek|hebrew|hindi|hungarian|icelandic|indonesian|irish|italian|japanese|korean|latin|latvian",
    r"lithuanian|malay|mandarin|norwegian|persian|polish|portuguese|romanian|russian|serbian|slovak|slovenian|spanish",
    r"swahili|swedish|tagalog|tamil|thai|turkish|ukrainian|urdu|vietnamese|welsh|yiddish",
)
_DEFINITE = r"(?:the|this|that|his|her|its|their|our|your|my|last|first) "
#: Forms that no quotation has.
_OTHER_FORM = re.compile(
    _any_of(
        rf"\b(?:in|into|to) (?:\w+ )?{_LANGUAGE}\b(?! (?:class|lesson|school|course|department|market|team|office))",
        rf"\b(?:as|into|in the (?:form|format) of|like|in) (?:an? |some |valid |plain )*"
        rf"(?:(?!{_DEFINITE})[\w-]+ )?{_TEXT}\b",
        r"\b(?:json|csv|xml|ya?ml|html|latex|markdown)\b",
        r"\b(?:in|with|using) (?:an? )?(?:\w+ )?(?:style|voice|tone|manner|rhymes?|verse|emojis?|slang|own words)\b",
        r"\b(?:in the style|as if|as though|like i'm|simpler (?:words|terms|language))\b",
        r"\w[- ]year[- ]old|\bfor a (?:child|layman|beginner)\b",
        r"\bon a scale\b|\b(?:from|between) (?:1|one|0|zero) (?:to|and) \w+|\bout of (?:5|10|ten|five)\b",
    ),
    re.IGNORECASE,
)
#: "Give me a headline", "Email to the team"; but not "the e-mail that was mentioned", which asks for a sentence.
_WRITES = re.compile(
    _any_of(
        rf"{_START}(?:{_GIVE}|suggest)(?: me| us)? (?:(?:some|{_DETERMINER}) )*(?:[\w-]+ )?{_TEXT}\b"
        r"(?! (?:address(?:es)?|numbers?|that (?:was|were|is|are)|(?:(?:was|were) )?mentioned))",
        rf"^\W*(?:[\w-]+ ){{0,4}}{_TEXT} (?:to|for) \w+",
    ),
    re.IGNORECASE,
)
_ABOUT_SUMMARY, _ABOUT_ACTIONS = (
    re.compile(rf"{_START}(?:{_GIVE} )?(?:{_DETERMINER} )*{noun}\b(?! {_TEXT}\b)", re.IGNORECASE)
    for noun in (_SUMMARY, _ACTIONS)
)
_WHAT_TO_DO = re.compile(
    r"\b(?:what|who|which)\b.{0,40}\b(?:to do|next steps?|follow[- ]?ups?|action items?|committed to|agreed to do)\b"
    r"(?! (?:with|about))",
    re.IGNORECASE,
)
_QUESTION = re.compile(
    _START
    + _any_of(
        r"(?:(?:at|in|on|by|for|from|to|with|of|about|until|since|under) )?(?:what|which|whom?|whose|when|where)\b",
        r"(?:why|how)\b",
        r"(?:is|are|was|were|do|does|did|has|have|had|will|would|can|could|should|shall|may|might)(?:n't)? (?!you\b)\w",
        r"(?:(?:any|every|some)(?:thing|one|body)?|all)\b",
        r"(?:find|locate|search|look (?:for|up)|(?:i'm |i am )?looking for|note|list|show|quote|cite|name|identify)\b",
        r"(?:point (?:out|to)|tell|mention|extract|pull (?:out|up)|pick out|highlight|collect|gather|check|see|know)\b",
        r"(?:hear|read out|describe|explain|give|get|provide|return|remind|state|specify|enumerate|count)\b",
    ),
    re.IGNORECASE,
)
_QUESTION_MARK = re.compile(r"\?\W*$")


def task_kind(prompt: str) -> TaskKind | None:
    """Return what quoting can do for a prompt; None if only a language model can do what it asks for.

    Example:
        >>> task_kind("Why was it late?"), task_kind("Next steps, please"), task_kind("Recap as a poem")
        ('question', 'action-items', None)
    """
    if needs_writing(prompt) or _WRITES.match(prompt):
        return None
    if _ABOUT_SUMMARY.match(prompt):
        return "summary"
    if _ABOUT_ACTIONS.match(prompt) or _WHAT_TO_DO.search(prompt):
        return "action-items"
    return "question" if _QUESTION.match(prompt) or _QUESTION_MARK.search(prompt) else None


def needs_writing(form: str) -> bool:
    """Return True for the description of an answer that no quotation has: another language, a poem, JSON.

    Example:
        >>> needs_writing("three bullets"), needs_writing("one sentence in German")
        (False, True)
    """
    return bool(_OTHER_FORM.search(form))
