"""What a manifest computes, looks up, maps, leaves out and sorts, without Python; Python's decimals are the oracle."""

from dataclasses import replace
from datetime import timedelta
from decimal import ROUND_HALF_UP, Decimal
from random import Random
from typing import Any

from tests.truth import words
from tests.truth.cases import Case, Sheet, Table, family
from tests.truth.families.rows import written
from tests.truth.tables import Column, Content, content, either, person, place, some_date, tell

_CENT = Decimal("0.01")


def sales(rng: Random) -> list[Column]:
    return [
        Column("order_id", "text", lambda r, n: f"A{1000 + n}"),
        Column("customer", "text", person),
        Column("price", "money", lambda r, n: r.randrange(1, 100_000) / 100, lambda v: f"{v:.2f}"),
        Column("quantity", "integer", lambda r, n: r.randrange(0, 40)),
        Column("ordered", "date", some_date),
        Column("shipped", "date", lambda r, n: some_date(r)),
    ]


def rows_of(made: Content) -> list[dict[str, Any]]:
    return [dict(zip((c.name for c in made.columns), row, strict=True)) for row in made.values]


def exact(value: float) -> Decimal:
    return Decimal(repr(value))


def plain(value: Decimal) -> int | float:
    return int(value) if value == value.to_integral_value() else float(value)


def some_size(rng: Random) -> int:
    return rng.choice((5, 9, 30, 120, 300))


def also(case: Case, *wanted: tuple[str, str, list[Any]]) -> Case:
    """The case with further columns of the output: each its name, the column that findings name, and its values."""
    (table,) = case.tables
    columns = table.columns | {name: table.columns[source] for name, source, _ in wanted}
    rows = [
        row._replace(wants=row.wants | {name: values[n] for name, _, values in wanted})
        for n, row in enumerate(table.rows)
    ]
    return replace(case, tables=[Table(table.sheet, columns, rows, table.sources)])


@family("computed_fields", plain=True)
def computed_fields(rng: Random) -> Case:
    """Exact money, texts put together and taken apart, parts and differences of dates; blanks stay blank."""
    made = content(rng, sales(rng), some_size(rng), blanks=rng.choice((0.0, 0.0, 0.2)))
    known = rows_of(made)

    def each(act: Any, *names: str) -> list[Any]:
        return [None if any(row[n] is None for n in names) else act(*(row[n] for n in names)) for row in known]

    total = each(lambda p, q: plain(exact(p) * q), "price", "quantity")
    tax = each(lambda p: plain((exact(p) * Decimal("0.19")).quantize(_CENT, ROUND_HALF_UP)), "price")
    days = each(lambda a, b: (b - a).days, "ordered", "shipped")
    late = each(lambda a, b: "late" if b - a > timedelta(30) else "in time", "ordered", "shipped")
    quarter = each(lambda d: f"{d.year}-Q{(d.month + 2) // 3}", "ordered")
    last = each(lambda name: name.split()[-1].upper(), "customer")
    tag = [", ".join(str(v) for v in (row["customer"], row["order_id"]) if v is not None) for row in known]
    expressions = {
        "total": ("money", "price * quantity", "price", total),
        "tax": ("money", "round(price * 0.19, 2)", "price", tax),
        "days": ("integer", "shipped - ordered", "shipped", days),
        "late": ("text", "if(days > 30, 'late', 'in time')", "shipped", late),
        "quarter": ("text", "year(ordered) & '-Q' & quarter(ordered)", "ordered", quarter),
        "last_name": ("text", "upper(split(customer, ' ', -1))", "customer", last),
        "tag": ("text", "join(', ', customer, order_id)", "customer", tag),
    }
    case = also(either(rng, made), *((name, source, values) for name, (_, _, source, values) in expressions.items()))
    fields = [{"name": n, "type": t, "from": {"expression": e}} for n, (t, e, _, _) in expressions.items()]
    return replace(case, fields=rng.sample([*case.fields, *fields], len(case.fields) + len(fields)))


@family("computed_fields_that_fail", mostly_right=False)
def computed_fields_that_fail(rng: Random) -> Case:
    """Divisions by zero are blank, and each is told at its row."""
    made = content(rng, sales(rng)[:4], some_size(rng))
    known = rows_of(made)
    each = [plain(exact(row["price"]) / row["quantity"]) if row["quantity"] else None for row in known]
    case = also(either(rng, made), ("each", "price", each))
    case.fields.append({"name": "each", "type": "decimal", "from": {"expression": "price / quantity"}})
    (table,) = case.tables
    failed = [table.rows[n].number for n, value in enumerate(each) if value is None]
    told = [tell("expression_error", field="each", row=row) for row in failed]
    return replace(case, tells=told, told=frozenset({"expression_error"}))


@family("several_columns", plain=True)
def several_columns(rng: Random) -> Case:
    """One field from several columns: the first value that is there, or all of them."""
    columns = [
        Column("order_id", "text", lambda r, n: f"A{1000 + n}"),
        Column("given name", "text", lambda r, n: r.choice(words.FIRST), declared=False),
        Column("surname", "text", lambda r, n: r.choice(words.LAST), declared=False),
        Column(
            "list price", "money", lambda r, n: r.randrange(100, 99_999) / 100, lambda v: f"{v:.2f}", declared=False
        ),
        Column(
            "sale price", "money", lambda r, n: r.randrange(100, 99_999) / 100, lambda v: f"{v:.2f}", declared=False
        ),
    ]
    made = content(rng, columns, some_size(rng), blanks=rng.choice((0.0, 0.3)))
    known = rows_of(made)
    names = [" ".join(v for v in (row["given name"], row["surname"]) if v) or None for row in known]
    prices = [row["sale price"] if row["sale price"] is not None else row["list price"] for row in known]
    case = also(either(rng, made), ("customer", "given name", names), ("price", "sale price", prices))
    (table,) = case.tables
    used = {c.name for c in columns if not c.declared}
    kept = {name: at for name, at in table.columns.items() if name not in used}
    rows = [row._replace(wants={n: v for n, v in row.wants.items() if n not in used}) for row in table.rows]
    case.fields += [
        {"name": "customer", "from": {"columns": ["Given Name", "Surname"], "combine": "join"}},
        {"name": "price", "type": "money", "from": {"columns": ["sale_price", "list price"]}},
    ]
    return replace(case, tables=[Table(table.sheet, kept, rows, table.sources)])


@family("lookups_and_maps", plain=True)
def lookups_and_maps(rng: Random) -> Case:
    """Values that a map turns into others, and columns of another table by key."""
    plans = [(f"P{n}", rng.randrange(100, 9999) / 100, rng.choice(words.COLOURS)) for n in range(rng.randrange(2, 40))]
    sexes = {"M": "male", "F": "female", "X": "other"}
    columns = [
        Column("member_id", "text", lambda r, n: f"M{1000 + n}"),
        Column("plan", "text", lambda r, n: r.choice(plans)[0]),
        Column("sex", "text", lambda r, n: r.choice("MFX"), lambda v: rng.choice((v, v.lower())), want=sexes.get),
    ]
    made = content(rng, columns, some_size(rng), blanks=rng.choice((0.0, 0.2)))
    prices, colours = {code: price for code, price, _ in plans}, {code: colour for code, _, colour in plans}
    known = [row["plan"] for row in rows_of(made)]
    case = also(either(rng, made), ("price", "plan", [prices.get(k) for k in known]), ("colour", "plan", [colours.get(k) for k in known]))  # fmt: skip
    source = {"lookup": "plans", "key": "plan", "match": "Code"}
    case.fields[-1]["map"] = sexes
    case.fields.insert(0, {"name": "price", "type": "money", "from": source | {"column": "price"}})
    case.fields.append({"name": "colour", "from": source | {"column": "COLOUR"}})
    body = "code,price,colour\n" + "".join(f"{code},{price:.2f},{colour}\n" for code, price, colour in plans)
    return replace(case, auxiliary={"plans": body.encode()})


def choosing(rng: Random, stay: Any, rows: dict[str, Any], *, order: Any = None) -> Case:
    """A case of which some rows stay: `stay` takes the known rows and says which, `order` sorts them."""
    made = content(rng, sales(rng), some_size(rng), blanks=rng.choice((0.0, 0.15)))
    for row in made.values:  # keys and dates that repeat
        row[0] = f"A{rng.randrange(len(made.values))}"
        if row[4] is not None and rng.random() < 0.5:
            row[4] = made.values[0][4] or row[4]
    texts = rng.random() < 0.4
    sheet = Sheet("Data")
    table = place(sheet, made, texts=texts)
    known = [row | {"row": n} for n, row in enumerate(rows_of(made))]
    wanted = stay(known)
    if order is not None:
        wanted = order(wanted)
    kept = [table.rows[row["row"]] for row in wanted]
    left = set(range(len(known))) - {row["row"] for row in wanted}
    case = written(rng, [sheet], [replace(table, rows=kept)], made.fields, texts=texts)
    why = "left out as the manifest asks"
    return replace(
        case,
        manifest={"rows": rows, "min_rows": 0},
        left={(case.tables[0].sheet, table.rows[n].number): why for n in left},
        told=frozenset({"dedupe_tied"}),
    )


@family("filtered_rows", plain=True)
def filtered_rows(rng: Random) -> Case:
    limit = rng.randrange(5, 35)
    text = f"coalesce(quantity, 0) >= {limit} or starts_with(coalesce(customer, '-'), 'A')"
    stay = lambda known: [r for r in known if (r["quantity"] or 0) >= limit or (r["customer"] or "-")[0] == "A"]  # noqa: E731
    return choosing(rng, stay, {"filter": text})


@family("deduplicated_rows", plain=True)
def deduplicated_rows(rng: Random) -> Case:
    keep = rng.choice(("first", "last", "newest"))

    def stay(known: list[dict[str, Any]]) -> list[dict[str, Any]]:
        groups: dict[str, list[dict[str, Any]]] = {}
        for row in known:
            groups.setdefault(row["order_id"], []).append(row)

        def age(row: dict[str, Any]) -> tuple[bool, Any, int]:
            return row["ordered"] is not None, row["ordered"] or 0, row["row"]

        chosen = {"first": lambda g: g[0], "last": lambda g: g[-1], "newest": lambda g: max(g, key=age)}[keep]
        return sorted((chosen(group) for group in groups.values()), key=lambda row: row["row"])

    dedupe = {"key": ["order_id"], "keep": keep} | ({"by": "ordered"} if keep == "newest" else {})
    return choosing(rng, stay, {"dedupe": dedupe})


@family("sorted_rows", plain=True)
def sorted_rows(rng: Random) -> Case:
    names = rng.sample(("customer", "price", "quantity", "ordered"), rng.randrange(1, 4))
    down = [rng.random() < 0.5 for _ in names]
    filtered = rng.random() < 0.5

    def order(known: list[dict[str, Any]]) -> list[dict[str, Any]]:
        for name, descending in reversed(list(zip(names, down, strict=True))):
            there = [row for row in known if row[name] is not None]
            fold = str.casefold if name == "customer" else lambda v: v
            there.sort(key=lambda row, name=name, fold=fold: fold(row[name]), reverse=descending)
            known = there + [row for row in known if row[name] is None]
        return known

    def stay(known: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [r for r in known if not filtered or r["quantity"] is None or r["quantity"] > 9]

    rows: dict[str, Any] = {"sort": [f"{'-' * d}{name}" for name, d in zip(names, down, strict=True)]}
    return choosing(
        rng, stay, rows | ({"filter": "quantity is blank or quantity > 9"} if filtered else {}), order=order
    )


@family("sums_and_totals", mostly_right=False)
def sums_and_totals(rng: Random) -> Case:
    """The sum of a column is the sheet's total, or it is told."""
    made = content(rng, sales(rng)[:4], rng.choice((5, 9, 30, 120)))
    total = sum((exact(row[2]) for row in made.values), Decimal(0))
    count = sum(row[3] for row in made.values)
    right = rng.random() < 0.5
    sheet = Sheet("Data")
    texts = rng.random() < 0.4
    table = place(sheet, made, texts=texts)
    stated = total if right else total + rng.choice((1, -1)) * rng.randrange(1, 500) * _CENT
    number = sheet.add(["Total", None, f"{stated:.2f}" if texts else float(stated), str(count) if texts else count])
    case = written(rng, [sheet], [table], made.fields, texts=texts)
    rules = [{"name": "control", "sum": "price", "equals": "total_row"}, {"name": "count", "sum": "quantity", "equals": "total_row"}]  # fmt: skip
    told = {"total_mismatch", "total_missing"}
    return replace(
        case,
        manifest={"rules": rules, "reading": {"total_rows": "drop"}},
        left={(case.tables[0].sheet, number): "a total"},
        tells=[] if right else [tell("total_mismatch", field="price")],
        told=frozenset() if right else frozenset({*told, "rows_doubtful"}),
    )
