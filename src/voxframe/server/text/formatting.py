"""Punctuation (`punctuate`) and capital letters (`format_text`) of recognized words.

Some engines recognize bare words: English punctuation is restored from words and pauses alone, and capital letters from
lists of names. Others write words with punctuation: it is separated before formatting, and put back at the end.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from itertools import pairwise

from voxframe._text import SENTENCE_ENDS
from voxframe.server.text import Word, runs

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

    Example:
        >>> sentence = [Word(text, 0, 0, 1.0) for text in "i met mister dashwood in new york".split()]
        >>> add_capitals(sentence)
        >>> " ".join(word.text for word in sentence)
        'I met Mr Dashwood in New York'
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
    """Move the punctuation at the end of words to `mark`, and set `ends_sentence`. Words without letters are removed.

    Example:
        >>> words = [Word("Well,", 0, 9, 1), Word("yes!", 9, 20, 1)]
        >>> [(word.text, word.mark, word.ends_sentence) for word in split_punctuation(words)]
        [('Well', ',', False), ('yes', '!', True)]
    """
    taken: list[Word] = []
    for word in words:
        last = _last(word.text)
        word.text, word.mark = word.text[:last], word.text[last:]
        word.ends_sentence = _ends(word.mark)
        if word.text:
            taken.append(word)
        elif taken:
            taken[-1].mark += word.mark
            taken[-1].ends_sentence |= word.ends_sentence
    if taken:
        taken[-1].ends_sentence = True
    return taken


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
    """Return the index of the first character that is not punctuation."""
    return next((at for at, sign in enumerate(text) if not _is_mark(sign)), len(text))


def _last(text: str) -> int:
    """Return the index after the last character that is not punctuation; 0 if there is none."""
    return next((at for at in range(len(text), 0, -1) if not _is_mark(text[at - 1])), 0)
