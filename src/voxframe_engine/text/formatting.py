"""Formatting of recognized words by the options of a job.

The options are `punctuate`, `format_text` (capital letters), `custom_spelling`, `disfluencies` and `filter_profanity`.

Some engines recognize bare words: English punctuation is restored from words and pauses alone, and capital letters from
lists of names. Others write words with punctuation: it is separated before formatting, and put back at the end.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from voxframe._text import SENTENCE_ENDS
from voxframe_engine.text import Word, merged, runs

_PAUSE_MS = 260  # ends a sentence
_LONG_PAUSE_MS = 1500  # ends a sentence after one of _LEADS_ON
#: Words that rarely end a sentence.
_LEADS_ON = frozenset(
    "a an the this's my your his their our its every each and or but nor because if unless until although than as of "
    "to from with into onto upon between at by for i he she we they who whose which when where while is am are was "
    "were be been being has had will would shall should could can may might must very so quite too rather not i'm "
    "you're he's we're they're i've we've you've they've i'd i'll we'll mister missus doctor".split()
)
_AUXILIARY = frozenset(
    "is are was were do does did has have had can could will would shall should may might must isn't aren't wasn't "
    "don't doesn't didn't hasn't haven't can't couldn't won't wouldn't shouldn't".split()
)
_SUBJECT = frozenset(
    "i you he she it we they there this that these those the a an my your his her its our their any anyone anybody "
    "anything someone everyone somebody everybody".split()
)
_ASKING = frozenset("what who whose which where when why how what's who's where's how's".split())
_COMPLETE = frozenset("what's who's where's how's why what how".split())  # form questions without an auxiliary
_OPENERS = frozenset("and so but well then okay now yes no oh".split())


def find_sentence_ends(words: Sequence[Word]) -> None:
    """Set `ends_sentence` in place: at pauses, and at changes of speaker or channel."""
    for run in runs(words):
        for word, after in pairwise(run):
            pause = after.start - word.end
            word.ends_sentence = pause >= (_LONG_PAUSE_MS if word.text.lower() in _LEADS_ON else _PAUSE_MS)
        run[-1].ends_sentence = True


def sentences_of(words: Sequence[Word]) -> list[list[Word]]:
    """Group words into sentences by `ends_sentence`."""
    groups: list[list[Word]] = []
    for run in runs(words):
        group: list[Word] = []
        for word in run:
            group.append(word)
            if word.ends_sentence:
                groups.append(group)
                group = []
        if group:
            groups.append(group)
    return groups


def add_mark(sentence: Sequence[Word]) -> None:
    """End a sentence in place with a full stop, or with a question mark if it has the word order of a question."""
    last = sentence[-1]
    if last.text[-1] not in ".?!":
        last.text += "?" if _asks([word.text.lower() for word in sentence]) else "."


def _asks(texts: list[str]) -> bool:
    """Return True for the word order of a question: "(and) what would", "is there"."""
    while len(texts) > 1 and texts[0] in _OPENERS:
        texts = texts[1:]
    first, second, third = (*texts, "", "", "")[:3]
    if first in _ASKING:
        return second in _AUXILIARY or (
            len(texts) > 1 and first in _COMPLETE and third in _AUXILIARY and second not in _SUBJECT
        )
    return first in _AUXILIARY and second in _SUBJECT and len(texts) > 2


_DAYS = "monday tuesday wednesday thursday friday saturday sunday"
_MONTHS = "january february april june july september october november december"
_FEASTS = "christmas easter halloween hanukkah passover ramadan thanksgiving"
_COUNTRIES = """
afghanistan africa albania algeria america antarctica arabia argentina armenia asia australia austria bangladesh
belgium bolivia brazil britain bulgaria cambodia canada chile china colombia croatia cuba denmark ecuador egypt
england estonia ethiopia europe finland france georgia germany ghana greece greenland guatemala haiti hungary iceland
india indonesia iran iraq ireland israel italy jamaica japan kenya korea kuwait latvia lebanon libya lithuania
luxembourg malaysia malta mexico mongolia morocco nepal netherlands nigeria norway pakistan palestine panama paraguay
peru philippines poland portugal romania russia rwanda scotland senegal serbia singapore slovakia slovenia somalia
spain sudan sweden switzerland syria taiwan tanzania thailand tunisia uganda ukraine uruguay venezuela vietnam yemen
zambia zimbabwe wales
"""
_PLACES = """
alabama alaska amsterdam arizona arkansas athens atlanta austin baghdad baltimore barcelona beijing berlin birmingham
boston brooklyn brussels budapest cairo california cambridge chicago cincinnati cleveland colorado connecticut
copenhagen dallas delaware delhi denver detroit dublin edinburgh florida frankfurt geneva glasgow hawaii hollywood
houston idaho illinois indiana iowa istanbul jerusalem johannesburg kansas kentucky lisbon liverpool london louisiana
madrid maine manchester manhattan maryland massachusetts melbourne memphis miami michigan milan milwaukee minneapolis
minnesota mississippi missouri montana montreal moscow mumbai munich nashville nebraska nevada ohio oklahoma oregon
orlando oslo ottawa oxford paris pennsylvania philadelphia pittsburgh prague princeton rome sacramento seattle seoul
shanghai stockholm sydney tennessee texas tokyo toronto utah vancouver venice vermont vienna virginia warsaw
washington wisconsin wyoming yorkshire zurich
"""
_PEOPLES = """
african american arab argentine asian australian austrian belgian brazilian british bulgarian canadian chilean
colombian croatian cuban czech dutch egyptian english ethiopian european french german greek hungarian indian
indonesian iranian iraqi irish israeli italian japanese jewish kenyan korean kurdish latin mexican moroccan nigerian
norwegian pakistani palestinian persian peruvian portuguese romanian roman russian scottish serbian spanish swedish
swiss syrian thai turkish ukrainian vietnamese welsh buddhist catholic christian christianity hindu islam islamic
judaism muslim protestant
"""
_PEOPLE = """
aaron abigail adam alan albert alex alexander alexandra alfred alice allison amanda amelia amy andrea andrew angela
ann anna anne annie anthony arthur barbara benjamin bernard betty brandon brenda brian bruce carl carla carol caroline
catherine cathy charles charlotte chris christina christine christopher cynthia daniel danielle david deborah dennis
diana diane donald dorothy douglas edgar edith edward eleanor elizabeth ellen emily emma eric ernest ethan eugene eva
evelyn fiona florence frances francis frederick gabriel gary george gerald gregory harold helen henry howard hugh
isaac isabella jacob jacqueline james jane janet jason jeffrey jennifer jeremy jerry jessica jim joan joe john johnny
jonathan joseph joshua juan judith julia julian julie karen katherine kathleen keith kelly kenneth kevin kimberly kyle
larry laura lauren lawrence leonard lewis linda lisa louis louise lucy luis margaret maria marie marilyn martha martin
mary matthew melissa michael michelle miguel mohammed monica nancy natalie nathan nicholas nicole nora norman oliver
olivia oscar pamela patricia patrick paul paula peter philip phillip rachel ralph raymond rebecca richard robert roger
ronald rosemary russell ryan samantha samuel sandra sarah scott sean sharon sheila shirley simon sophia sophie stanley
stephanie stephen steven stuart susan sylvia teresa theodore theresa thomas timothy tina todd tony tyler valerie
vanessa veronica victoria vincent virginia walter wendy william zachary
"""
_PAIRS = """
new york, new jersey, new zealand, new england, new orleans, new mexico, north carolina, south carolina, north dakota,
south dakota, south africa, north america, south america, latin america, united states, united kingdom, united nations,
los angeles, san francisco, san diego, san antonio, las vegas, saint louis, hong kong, puerto rico, costa rica,
middle east, white house, supreme court, saudi arabia, sri lanka, wall street
"""

#: Lower-case spellings.
PROPER = frozenset(f"{_DAYS} {_MONTHS} {_FEASTS} {_COUNTRIES} {_PLACES} {_PEOPLES} {_PEOPLE}".split())
#: Two-word phrases whose words are common by themselves.
PROPER_PAIRS = frozenset(tuple(pair.split()) for pair in " ".join(_PAIRS.split()).split(", "))
#: Spoken titles and how they are written before a name.
TITLES = {"mister": "Mr", "missus": "Mrs", "doctor": "Dr"}


_FIRST_PERSON = ("i", "i'm", "i'll", "i've", "i'd")

_DETERMINERS = frozenset("a an the my your his her our their this that every any each no another which what".split())
_NO_NAMES = frozenset(
    "a an the and or but is was are were has had have does did do can could will would shall should may might must to "
    "of in on at for from with by as if that this who which when where said says told asked came went i he she it we "
    "they you not no then there here".split()
)


def add_capitals(sentence: Sequence[Word]) -> None:
    """Capitalize a sentence in place: its first word, "I", names, titles and the names after them.

    Words that already have a capital, or a spelling set by `custom_spelling`, do not change.
    """
    texts = [word.text for word in sentence]
    for at, word in enumerate(sentence):
        if word.spelling_fixed:
            continue
        text = texts[at]
        before, after = _at(texts, at - 1), _at(texts, at + 1)
        if _is_title(before, text, after):
            word.text = TITLES[text]
        elif (  # the last two: "mister dashwood", "mister john dashwood"
            at == 0
            or text in _FIRST_PERSON
            or text.removesuffix("'s") in PROPER
            or (before, text) in PROPER_PAIRS
            or (text, after) in PROPER_PAIRS
            or (at > 0 and _is_title(_at(texts, at - 2), before, text))
            or (
                at > 1
                and before in PROPER
                and text not in _NO_NAMES
                and _is_title(_at(texts, at - 3), texts[at - 2], before)
            )
        ):
            word.text = _capitalized(text)


def _at(texts: Sequence[str], index: int) -> str:
    return texts[index] if 0 <= index < len(texts) else ""


def _is_title(before: str, text: str, after: str) -> bool:
    """Return True for a title before a name: "doctor baker", but not "the doctor asked" or "is the doctor in"."""
    return text in TITLES and before not in _DETERMINERS and after.isalpha() and after not in _NO_NAMES


def _capitalized(text: str) -> str:
    return text if any(letter.isupper() for letter in text) else text[:1].upper() + text[1:]


def split_punctuation(words: Sequence[Word]) -> list[Word]:
    """Move punctuation at the end of words to `mark`, and set `ends_sentence`. Words without letters are removed."""
    words_out: list[Word] = []
    for word in words:
        last = _last(word.text)
        word.text, word.mark = word.text[:last], word.text[last:]
        word.ends_sentence = _ends(word.mark)
        if word.text:
            words_out.append(word)
        elif words_out:
            words_out[-1].mark += word.mark
            words_out[-1].ends_sentence |= word.ends_sentence
    if words_out:
        words_out[-1].ends_sentence = True
    return words_out


def join_punctuation(words: Sequence[Word], *, punctuate: bool, format_text: bool) -> None:
    """Write the final text of the words in place: with or without punctuation, with or without capitals."""
    for word in words:
        if punctuate:
            word.text += word.mark
        else:
            word.text = word.text[_first(word.text) :]
        if not (format_text or word.spelling_fixed):
            word.text = word.text.lower()


def _ends(mark: str) -> bool:
    return any(sign in mark for sign in SENTENCE_ENDS)


def _is_mark(sign: str) -> bool:
    """Return True for punctuation around a word, not for signs that belong to it as in 5%, @name or 'tis."""
    return unicodedata.category(sign).startswith("P") and sign not in "%#@&'\u2019"


def _first(text: str) -> int:
    """Return the index of the first character that is not punctuation. The sign or point of -5 or .5 is none."""
    at = next((at for at, sign in enumerate(text) if not _is_mark(sign)), len(text))
    is_number = text[at : at + 1].isdigit() and text[:at].endswith(("-", ".")) and not text[:at].endswith(("--", ".."))
    return at - 1 if is_number else at


def _last(text: str) -> int:
    """Return the index after the last character that is not punctuation; 0 if there is none."""
    return next((at for at in range(len(text), 0, -1) if not _is_mark(text[at - 1])), 0)


def respell(words: Sequence[Word], rules: Sequence[Mapping[str, Any]]) -> list[Word]:
    """Replace words and phrases.

    Args:
        rules: Entries of the request: `{"from": ["dee carlo", "dicarlo"], "to": "Decarlo"}`. A phrase matches in any
            case within one speaker and channel. If several match at one position, the longest is used. A point at its
            end is replaced with it: "dr." is written "Doctor", not "Doctor.".

    Returns:
        New words. A word that replaces several has their time span and mean confidence. Its spelling is final: no
        capital is added at the start of a sentence.
    """
    spellings: dict[tuple[str, ...], tuple[list[str], str]] = {}
    for rule in rules:
        for phrase in rule["from"]:
            words_of_it = split_punctuation([Word(text, 0, 0, 0.0) for text in phrase.lower().split()])
            if words_of_it and rule["to"].split():
                spellings[tuple(word.text for word in words_of_it)] = rule["to"].split(), words_of_it[-1].mark
    lengths = sorted(set(map(len, spellings)), reverse=True)
    respelled: list[Word] = []
    at = 0
    while at < len(words):
        for length in lengths:
            span = words[at : at + length]
            texts, mark = spellings.get(tuple(word.text.lower() for word in span), ((), ""))
            if texts and len({(word.speaker, word.channel) for word in span}) == 1:
                respelled += [replace(word, spelling_fixed=True) for word in merged(span, texts)]
                respelled[-1].mark = respelled[-1].mark.removeprefix(mark)
                at += len(span)
                break
        else:
            respelled.append(words[at])
            at += 1
    return respelled


#: Filled pauses. "uh-huh", "mhm" and "huh" are replies, so they are not in the list.
FILLED_PAUSES = frozenset({"um", "umm", "uhm", "uh", "er", "erm", "hm", "hmm", "mm"})


def without_filled_pauses(words: Sequence[Word]) -> list[Word]:
    """Return the words without filled pauses.

    If one ended a sentence, the word before it does. If one began a sentence with a capital, the word after it does.
    """
    result: list[Word] = []
    for run in runs(words):
        capital, first = False, len(result)
        for word in run:
            begins = len(result) == first or result[-1].ends_sentence
            if word.text.lower() not in FILLED_PAUSES:
                result.append(replace(word, text=_capitalized(word.text)) if capital and begins else word)
                capital = False
            elif word.ends_sentence and len(result) > first:
                result[-1].ends_sentence, result[-1].mark = True, word.mark
            else:
                capital |= begins and word.text[0].isupper()
    return result


# _STEMS take any of the endings below. _WORDS match only as they are ("cocktail" and "assess" are not profane).
_STEMS = (
    "arsehole asshole bastard bitch bollock bugger bullshit cocksucker cunt dickhead dumbass fuck jackass motherfuck "
    "shit twat wank whore"
)
_WORDS = (
    "arse arses ass asses cock cocks crap crappy cum dammit damn damned dick dicks fag fags faggot faggots goddam "
    "goddamn goddamned nigga niggas nigger niggers piss pissed pisses pissing prick pricks pussies pussy shitless "
    "shitload shitty shitting slut sluts slutty tits"
)
_ENDINGS = "s|es|ed|er|ers|ing|in|y|face|head|heads|hole|holes"
_PROFANE = re.compile(
    rf"(?:(?:{'|'.join(_STEMS.split())})(?:{_ENDINGS})?|{'|'.join(_WORDS.split())})(?:'s)?", re.IGNORECASE
)
_LETTERS = re.compile(r"[A-Za-z']+")


def masked(text: str) -> str:
    """Return the text with all letters of swear words, except the first, replaced by asterisks."""
    return _LETTERS.sub(lambda match: _mask(match[0]) if _PROFANE.fullmatch(match[0]) else match[0], text)


def _mask(word: str) -> str:
    return word[0] + "*" * (len(word) - 1)
