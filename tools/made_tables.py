"""Tables that the project makes up to train and judge the matcher: headers over values, fields, and what was learnt.

Every world has invented words of its own beside the general ones, so that some headers can be known only from what was
learnt. Nothing here comes from a real sender.
"""

import json
import random
from pathlib import Path

from runner.engine.common.fields import Field
from runner.engine.mapping.column_evidence import ColumnIn
from runner.engine.mapping.sample import Sample

KNOWLEDGE = json.loads((Path(__file__).parents[1] / "runner/engine/mapping/knowledge.json").read_text())
CONCEPTS = {
    name: (c["domain"], c["values"].split()[0], c["phrases"].split(", ")) for name, c in KNOWLEDGE["concepts"].items()
}
SPELLINGS = {name: text.split() for name, text in KNOWLEDGE["words"].items()}
VOCABULARY = {name: text.split() for name, text in KNOWLEDGE["vocabulary"].items()}
ROLES = KNOWLEDGE["roles"].split()
SUBJECTS = ["member", "customer", "patient", "student", "employee", "client", "applicant"]  # whom rows are about
PREFIXES = [
    "situs",
    "prop",
    "property",
    "site",
    "full",
    "new",
    "loc",
    "addr",
    "p",
    "s",
    "mail",
    "phys",
    "main",
    "cur",
    "old",
    "src",
    "my",
    "e911",
    "gis",
]
SYLLABLES = [
    "ba",
    "ke",
    "lo",
    "mi",
    "ru",
    "sta",
    "vel",
    "dor",
    "gan",
    "pri",
    "tos",
    "nek",
    "hul",
    "va",
    "ser",
    "oma",
    "ti",
    "ple",
    "zu",
    "kra",
]
NAMES = [
    "Lake",
    "River",
    "Oak",
    "Spring",
    "Mill",
    "Park",
    "Hill",
    "Sun",
    "Moon",
    "Church",
    "Stone",
    "North",
    "South",
    "Green",
    "White",
    "Black",
    "Rose",
    "King",
    "Queen",
    "Saint",
    "Fort",
    "Port",
    "New",
    "Old",
]
ENDS = [
    "ville",
    "ton",
    "field",
    "dale",
    "wood",
    "burg",
    "stadt",
    "heim",
    "ford",
    "port",
    "mouth",
    "land",
    "view",
    "haven",
    "side",
    "berg",
    "hausen",
    "villa",
    "polis",
]
FIRST = VOCABULARY["first"] + ["Tom", "Eva", "Ned", "Ivy", "Max", "Zoe", "Raj", "Yuki", "Omar", "Lena"]
LAST = VOCABULARY["last"] + [
    "Stone",
    "Archer",
    "Bloom",
    "Vargas",
    "Dubois",
    "Keller",
    "Okafor",
    "Haas",
    "Lind",
    "Moreau",
]
TEXTS = [
    "checked",
    "new",
    "build",
    "see",
    "file",
    "owner",
    "moved",
    "needs",
    "review",
    "none",
    "called",
    "twice",
    "no",
    "answer",
    "corner",
    "lot",
    "behind",
    "the",
    "school",
    "updated",
    "by",
    "phone",
]


def place(rng):
    kind = rng.random()
    if kind < 0.6:
        return rng.choice(NAMES) + rng.choice(ENDS)
    if kind < 0.8:
        return f"{rng.choice(['San', 'Saint', 'St.', 'Bad', 'Villa', 'New', 'Port', 'El', 'La'])} {rng.choice(NAMES)}"
    return "".join(rng.choices(SYLLABLES, k=rng.randint(2, 3))).title()


def person(rng):
    first, last = rng.choice(FIRST).title(), rng.choice(LAST).title()
    return rng.choice(
        [f"{first} {last}", f"{last}, {first}", f"{last} {first[0]}", f"{first[0]}. {last}", f"{last} {first}".upper()]
    )


def street(rng, kind):
    core = rng.choice([place(rng), str(rng.randint(1, 99)) + "th", rng.choice(LAST).title(), place(rng)])
    if kind == 0:
        end = rng.choice(
            [
                "Street",
                "St",
                "Avenue",
                "Ave",
                "Road",
                "Rd",
                "Drive",
                "Dr",
                "Lane",
                "Ln",
                "Court",
                "Ct",
                "Blvd",
                "Way",
                "Circle",
                "Pl",
                "Terrace",
                "Trail",
            ]
        )
        return rng.choice(["", "", "", "N ", "S ", "W ", "E "]) + f"{core} {end}"
    if kind == 1:
        return core + rng.choice(
            ["strasse", "straße", "weg", "gasse", "platz", "straat", "laan", "gatan", "vägen", "vej", "gade"]
        )
    if kind == 2:
        start = [
            "Rue",
            "Rue_de",
            "Calle",
            "Avenida",
            "Via",
            "Viale",
            "Rua",
            "Ulica",
            "Piazza",
            "Chemin",
            "Plaza",
            "Travessa",
        ]
        return f"{rng.choice(start).replace('_', ' ')} {core}"
    if kind == 3:
        return core
    return street(rng, rng.choice([0, 0, 1, 2, 3]))


def maker(kind, rng):
    """A function of the row that makes values of a class, in one of the styles that columns of it have."""
    style = rng.random()
    few = rng.randint(2, 8)
    upper = rng.random() < 0.3

    def pool(make, size=None):
        values = [make() for _ in range(size or rng.choice([few, 30, 200]))]
        if upper:
            values = [v.upper() for v in values]
        return lambda _: rng.choice(values)

    start, step = rng.choice([1, 1, 100, 1000, 100_000, 5_000_000]), rng.choice([1, 1, 2, 7, 13])
    base = (rng.uniform(-60, 68), rng.uniform(-170, 170))
    digits = rng.choice([4, 5, 6, 7, 10])
    year = rng.randint(1990, 2024)
    kind_of_street = rng.choice([0, 0, 0, 1, 2, 3, 4])
    makers = {
        "house_number": lambda n: (
            f"{rng.randint(1, 300)}{rng.choice('ABCabc')}" if rng.random() < (0.3 if style < 0.3 else 0.05) else rng.randint(1, 9999 if style < 0.6 else 220)
        ),
        "street": pool(lambda: street(rng, kind_of_street)),
        "unit": lambda n: None if rng.random() < (0.75 if style < 0.7 else 0.2) else rng.choice(
            [str(rng.randint(1, 30)), rng.choice("ABCDEF"), f"APT {rng.randint(1, 40)}", f"Unit {rng.randint(1, 9)}", f"#{rng.randint(1, 99)}", f"STE {rng.randint(100, 400)}", f"{rng.randint(1, 9)}{rng.choice('AB')}"]
        ),
        "place": pool(lambda: place(rng)),
        "district": pool(lambda: rng.choice([f"{place(rng)} County", place(rng), rng.choice(["North", "South", "East", "West", "Central", "Centro"]), f"{rng.choice(['Ward', 'District', 'Zone'])} {rng.randint(1, 9)}"]), few),
        "region": pool(lambda: rng.choice(VOCABULARY["region"]).upper() if style < 0.7 else rng.choice([rng.choice(VOCABULARY["region"]).title(), place(rng)]), rng.choice([1, 1, 2, 5, 12])),
        "postcode": lambda n: (
            f"{rng.randint(501, 99950):05d}" if style < 0.5 else rng.randint(1000, 9999) if style < 0.7 else f"{rng.choice('ABCEGKLMNSWY')}{rng.randint(1, 9)}{rng.choice('ABCE')} {rng.randint(1, 9)}{rng.choice('XYZ')}{rng.randint(1, 9)}" if style < 0.8 else f"{rng.randint(10000, 99999)}-{rng.randint(0, 9999):04d}" if style < 0.88 else f"{rng.randint(10, 99)}-{rng.randint(100, 999)}"
        ),
        "country": pool(lambda: rng.choice(VOCABULARY["country"]).title() if style < 0.6 else rng.choice(VOCABULARY["country"]).upper()[:2], few),
        "address": pool(lambda: f"{rng.randint(1, 9999)} {street(rng, 0)}" if style < 0.6 else f"{street(rng, rng.choice([1, 2]))} {rng.randint(1, 200)}"),
        "direction": lambda n: rng.choice([None, None, *VOCABULARY["direction"][:8]]),
        "street_type": pool(lambda: rng.choice(VOCABULARY["street"][:24]).title(), few + 3),
        "latitude": lambda n: round(base[0] + rng.random() * (1 if style < 0.8 else 8), min(8, digits)),
        "longitude": lambda n: round(base[1] + rng.random() * (1 if style < 0.8 else 8), min(8, digits)),
        "decimal": lambda n: round(rng.random() * 10 ** rng.randint(0, 5), rng.choice([1, 2, 3, 6])),
        "identifier": (
            (lambda n: start * 10 + n * step) if style < 0.3 else (lambda n: rng.randint(10**digits, 10 ** (digits + 1))) if style < 0.5 else (lambda n: f"{rng.choice('ABMKR')}-{rng.randint(100, 99999)}") if style < 0.65 else (lambda n: f"{rng.randint(10, 99)}-{rng.randint(100, 999)}-{rng.randint(10, 99)}") if style < 0.85 else (lambda n: f"{rng.getrandbits(64):016x}")
        ),
        "row_number": lambda n: n + (1 if style < 0.7 else start),
        "uuid": lambda n: f"{{{rng.getrandbits(128):032X}}}" if style < 0.4 else f"{rng.getrandbits(32):08x}-{rng.getrandbits(16):04x}-{rng.getrandbits(16):04x}-{rng.getrandbits(16):04x}-{rng.getrandbits(48):012x}",
        "date": lambda n: (
            f"{year + rng.randint(0, 2)}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}" if style < 0.5 else f"{rng.randint(1, 12)}/{rng.randint(1, 28)}/{year}" if style < 0.7 else f"{rng.randint(1, 28):02d}.{rng.randint(1, 12):02d}.{year}" if style < 0.85 else f"{year}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d} {rng.randint(0, 23):02d}:{rng.randint(0, 59):02d}:00"
        ),
        "person": pool(lambda: person(rng)),
        "text": lambda n: None if rng.random() < 0.5 else " ".join(rng.choices(TEXTS, k=rng.randint(1, 6))),
        "status": pool(lambda: rng.choice(VOCABULARY["status"]).title(), rng.randint(2, 4)),
        "category": pool(lambda: rng.choice([rng.choice(["R1", "R2", "C1", "SFR", "APT", "COM", "RES", "IND", "AG", "MF"]), str(rng.randint(1, 9) * 100 + rng.choice([0, 10, 40])), "".join(rng.choices(SYLLABLES, k=2)).title(), rng.choice(["Residential", "Commercial", "Sales", "gold", "silver", "USD", "EUR", "M", "F", "Hour", "Month", "kg"])]), few),
        "url": lambda n: f"https://{rng.choice(SYLLABLES)}.example/{rng.randint(1, 999)}",
        "small_number": lambda n: rng.randint(0 if style < 0.3 else 1, rng.choice([4, 9, 9, 40, 60])),
        "year": lambda n: rng.randint(1890, 2024),
        "money": lambda n: f"${rng.randint(1, 900)},{rng.randint(0, 999):03d}.00" if style < 0.3 else round(rng.random() * 10 ** rng.randint(2, 6), 2) if style < 0.8 else rng.randint(1, 900) * 100,
        "text_short": pool(lambda: rng.choice([f"{place(rng)} {rng.choice(['Estates', 'Heights', 'Addition', 'Worker', 'Engineer', 'Widget', 'Cable', 'Set'])}", f"{rng.choice(NAMES)} {rng.choice(TEXTS)}", f"LOT {rng.randint(1, 60)} BLK {rng.randint(1, 9)}", str(rng.randint(1, 60))])),
        "company": pool(lambda: f"{rng.choice(LAST).title()} {rng.choice(['Inc', 'LLC', 'GmbH', 'Ltd', 'Farms', 'Group', 'Services', '& Co', 'Store'])}"),
        "first_name": pool(lambda: rng.choice(FIRST).title(), 40),
        "last_name": pool(lambda: rng.choice(LAST).title(), 40),
        "email": lambda n: f"{rng.choice(FIRST).lower()}.{n}@{rng.choice(SYLLABLES)}.example",
        "phone": lambda n: f"555-{rng.randint(0, 9999):04d}" if style < 0.4 else f"({rng.randint(200, 989)}) 555-{rng.randint(0, 9999):04d}" if style < 0.7 else f"+{rng.randint(1, 60)} {rng.randint(10, 999)} {rng.randint(100_000, 9_999_999)}",
        "quantity": lambda n: rng.randint(0, rng.choice([20, 100, 5000])),
        "time": lambda n: f"{rng.randint(0, 23):02d}:{rng.choice(['00', '15', '30', '45'])}",
        "boolean": lambda n: rng.choice([("Y", "N"), ("true", "false"), ("1", "0"), ("yes", "no")][few % 4]),
    }  # fmt: skip
    return makers[kind]


def values(kind, rng, rows=None):
    if kind == "any":
        kind = rng.choice(["company", "person", "text_short", "category", "decimal"])
    make = maker(kind, rng)
    blanks = rng.choice([0, 0, 0, 0.1, 0.4])
    return [None if rng.random() < blanks else make(n) for n in range(rows or rng.choice([4, 12, 25, 40]))]


class World:
    """The words that senders of one kind of list use, some of them their own."""

    def __init__(self, rng, invented=None):
        self.rng = rng
        self._invented = rng.choice([0.0, 0.1, 0.25, 0.5]) if invented is None else invented
        self._own = {}
        self._favourites = {}

    def header(self, concept):
        """A header of a concept: its sender's choice among what is usual in this world."""
        rng = self.rng
        known = self._favourites.setdefault(concept, [])
        if known and rng.random() < len(known) / (len(known) + 2.5):
            return rng.choice(known)
        made = self._spelled(rng.choice(CONCEPTS[concept][2][: rng.choice([3, 6, 50])]))
        known.append(made)
        return made

    def _spelled(self, phrase):
        rng, words = self.rng, []
        for word in phrase.split():
            if word not in self._own:
                own = "".join(rng.choices(SYLLABLES, k=rng.randint(2, 3))) if rng.random() < self._invented else None
                self._own[word] = own
            usual = [s for s in SPELLINGS.get(word, ()) if s.isascii()]
            words.append(self._own[word] or (rng.choice(usual) if usual and rng.random() < 0.45 else word))
        if len(words) == 2 and rng.random() < 0.15 and (one := SPELLINGS.get(phrase)):
            words = [rng.choice(one)]
        if rng.random() < 0.25:
            words.insert(0, rng.choice(PREFIXES))
        elif rng.random() < 0.06:
            words.append(rng.choice(["name", "code", "no", "id", "value", "type"]))
        elif len(words) > 2 and rng.random() < 0.25:
            del words[rng.randrange(len(words))]
        return self._styled(words)

    def _styled(self, words):
        rng = self.rng
        style = rng.randrange(8)
        text = {
            0: "_".join(words).upper(), 1: "".join(words).upper(), 2: "_".join(words), 3: "".join(w.title() for w in words),
            4: " ".join(words).title(), 5: "".join(words), 6: "_".join(w.title() for w in words), 7: " ".join(words),
        }[style]  # fmt: skip
        if rng.random() < 0.15:
            text = text[:10].rstrip("_ ")  # as old formats cut names off
        if rng.random() < 0.04:
            text += rng.choice(["_1", "1", "2", "_"])
        if rng.random() < 0.06 and len(text) > 5:
            at = rng.randrange(1, len(text) - 1)
            text = text[:at] + text[at + 1 :]
        return text


TYPES = {"date": "date", "email": "email", "money": "money", "latitude": "decimal", "longitude": "decimal", "phone": "phone", "quantity": "integer", "time": "time", "url": "url", "boolean": "boolean", "small_number": "integer"}  # fmt: skip
STEMS = [
    "employer",
    "worksite",
    "agent",
    "customer",
    "supplier",
    "billing",
    "shipping",
    "home",
    "owner",
    "member",
    "patient",
    "contact",
]


class Case:
    """One table with its fields, what was learnt, and the truth."""

    def __init__(self, rng):
        domains = rng.choice(
            [
                ("address",),
                ("address",),
                ("people", "work"),
                ("trade",),
                ("people", "address"),
                ("work", "trade"),
                ("estate", "address"),
                ("trade", "people"),
            ]
        )
        mine = [n for n, (d, _, _) in CONCEPTS.items() if d in domains] + rng.sample(sorted(CONCEPTS), 3)
        wanted = rng.sample(sorted(set(mine)), min(len(set(mine)), rng.randint(1, 14)))
        if rng.random() < 0.6 and "identifier" not in wanted:
            wanted.append("identifier")
        stems = rng.sample(STEMS, 2) if rng.random() < 0.2 else []
        world = World(rng)
        parts = [(c, s) for c in wanted for s in (stems or [""]) if not s or rng.random() < 0.7] or [(wanted[0], "")]
        self.fields = [self._field(rng, c, s) for c, s in parts]
        names = {p: f.name for p, f in zip(parts, self.fields, strict=True)}
        if len(set(names.values())) < len(names):
            parts = list({names[p]: p for p in parts}.values())
            self.fields = list({f.name: f for f in self.fields}.values())
        here = [p for p in parts if rng.random() < 0.7]
        others = [c for c in CONCEPTS if c not in wanted]
        foreign = [(c, "") for c in rng.sample(others, rng.randint(0, 7))]
        foreign += [(c, rng.choice(STEMS)) for c in rng.sample(wanted, min(2, len(wanted)))] if stems else []
        roles = rng.sample(ROLES, 2)
        foreign += [(c, rng.choice(roles)) for c in wanted if rng.random() < 0.1] if not stems else []
        subject = rng.choice(SUBJECTS) if not stems and rng.random() < 0.1 else ""
        if rng.random() < 0.35 and "row_number" not in wanted:
            foreign.append(("row_number", ""))
        foreign = [p for p in dict.fromkeys(foreign) if p not in parts]
        others = [c for c in sorted(CONCEPTS) if c not in wanted]
        foreign += [
            (self._other(rng, rng.choice(self.fields).name), rng.choice([rng.choice(wanted), rng.choice(others)]))
            for _ in range(rng.choice([0, 0, 0, 0, 1, 2]))
        ]
        plan = [*here, *foreign]
        rng.shuffle(plan)
        self.columns, self.truth = [], {}
        seen = set()
        for concept, stem in plan:
            known = concept in CONCEPTS
            said = concept
            if known and rng.random() < 0.04:  # a header that its sender uses for something else of its kind
                said = rng.choice([c for c, (d, _, _) in CONCEPTS.items() if d == CONCEPTS[concept][0]])
            about = subject if (concept, stem) in here and rng.random() < 0.6 else ""
            header = self._header(rng, world, said, stem or about, only=stem in roles) if known else concept
            if concept in CONCEPTS and rng.random() < 0.02:
                header = rng.choice(["Column X", "Field1", "Data", "F7", "Unnamed", "Value", "Spalte 3"])
            kind = CONCEPTS[concept if concept in CONCEPTS else stem][1]
            if rng.random() < 0.05:  # values of a kind that nobody thought of
                kind = rng.choice(sorted(CONCEPTS.values()))[1]
            if header.casefold() in seen:
                continue
            seen.add(header.casefold())
            n = len(self.columns)
            self.columns.append(ColumnIn(n, (header,), Sample(values(kind, rng))))
            if (concept, stem) in here:
                self.truth[n] = names[concept, stem]
        senders = rng.choice([0, 0, 0, 3, 10, 40, 150])
        self.entries = []
        for p in [p for _ in range(senders) for p in parts if p in names and rng.random() < 0.5]:
            # Senders that have nothing better give their program's own number as the identifier.
            poor = p[0] == "identifier" and rng.random() < 0.12
            header = self._header(
                rng, world, rng.choice(["row_number", "row_number", "global_id"]) if poor else p[0], p[1]
            )
            self.entries.append({"header": header, "field": names[p]})
        if rng.random() < 0.3:  # a person has decided about some of these very headers
            for n in range(len(self.columns)):
                if rng.random() < 0.3:
                    said = {"header": self.columns[n].headers[0], "field": self.truth.get(n), "said_at": "2026-01-31"}
                    self.entries.append(said)

    @staticmethod
    def _other(rng, name):
        """A header with words of a field that is something else: another word in place of one, or one more."""
        words = name.split("_")
        more = rng.choice([*STEMS, *sorted(SPELLINGS)[:150]]).split()[0]
        if len(words) > 1 and rng.random() < 0.93:
            words[rng.randrange(len(words))] = more
        else:
            words.insert(0, rng.choice(STEMS))
        return rng.choice(["_".join(words).upper(), " ".join(words).title(), "".join(words), "_".join(words)])

    @staticmethod
    def _field(rng, concept, stem):
        phrase = CONCEPTS[concept][2][0] if rng.random() < 0.7 else rng.choice(CONCEPTS[concept][2][:4])
        name = "_".join([stem, *phrase.split()] if stem else phrase.split())
        if rng.random() < 0.2 and not stem:
            name = concept
        if rng.random() < 0.12:  # a name that says nothing
            name = "".join(rng.choices(SYLLABLES, k=3))
        spec = {"name": name}
        if rng.random() < 0.3:
            spec["label"] = rng.choice(CONCEPTS[concept][2][:3]).capitalize()
        kind = TYPES.get(CONCEPTS[concept][1])
        if kind and rng.random() < 0.5:
            spec["type"] = kind
        return Field(spec)

    @staticmethod
    def _header(rng, world, concept, stem, *, only=False):
        header = world.header(concept)
        if not stem:
            return header
        if rng.random() < 0.1 and not only:
            return header  # the sender knows only one
        stem = stem if only or rng.random() < 0.7 else stem[: rng.randint(3, 5)]
        if rng.random() < 0.2:
            stem += "_" + rng.choice(["location", "site", "info", "record", "main"])
        return (stem.upper() + "_" + header) if header.isupper() or "_" in header else (stem.title() + header)


def cases(seed, count):
    rng = random.Random(seed)
    return [Case(rng) for _ in range(count)]
