"""Words that English writes with a capital wherever they stand; not those that are common words too ("may", "mark")."""

from __future__ import annotations

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
#: Phrases of two words, each of which is common by itself.
PROPER_PAIRS = frozenset(tuple(pair.split()) for pair in " ".join(_PAIRS.split()).split(", "))
#: Spoken titles and how they are written before a name.
TITLES = {"mister": "Mr", "missus": "Mrs", "doctor": "Dr"}
