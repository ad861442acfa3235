"""Which functions are checked on which table; a function of the native kernel without a case fails the suite."""

from __future__ import annotations

from tests.plan.dialects.conformance.language import Number, Text

_ARITHMETIC = [
    ("b", "b"),
    ("h", "b"),
    ("i", "j"),
    ("l", "m"),
    ("i", "m"),
    ("f", "g"),
    ("d", "e"),
    ("i", "e"),
    ("f", "e"),
    ("n", "o"),
    ("q", "o"),
    ("i", "o"),
    ("l", "o"),
    ("n", "e"),
    ("p", "o"),
    ("w", "o"),
    ("q", "q"),
    ("v", "o"),
]
_COMPARED = [*_ARITHMETIC, ("i", "n"), ("d", "f"), ("w", "v"), ("t", "u"), ("d", "d"), ("w", "d")]

NUMBERS = [
    *(("+", a, b) for a, b in _ARITHMETIC),
    *(("-", a, b) for a, b in _ARITHMETIC),
    *(("*", a, b) for a, b in _ARITHMETIC if (a, b) not in (("b", "b"), ("l", "m"))),
    *((op, a, b) for op in ("/", "%", "pmod") for a, b in _ARITHMETIC if b not in ("b", "q")),
    *(("div", a, b) for a, b in (("i", "j"), ("l", "m"), ("i", "m"), ("n", "o"), ("i", "o"), ("p", "o"))),
    *((op, a, b) for op in ("=", "<=>", "<", ">", "<=", ">=", "<>") for a, b in _COMPARED),
    ("*", ("*", "n", ("-", 1, "o")), ("+", 1, "o")),
    ("*", "n", Number("0.5")),
    ("+", "n", 1),
    ("-", 100, "n"),
    ("*", "n", -1),
    ("/", "n", 3),
    ("/", 1, "o"),
    ("/", "i", Number("3.0")),
    ("/", "i", 7),
    ("/", "n", ("*", "o", "o")),
    ("/", ("*", "q", "o"), "o"),
    ("%", "n", 7),
    ("%", "i", 7),
    ("+", "i", 1),
    ("+", "b", 1),
    ("+", "l", 1),
    ("+", "d", 1),
    ("+", "d", Number("1.5")),
    ("+", "i", None),
    ("+", "n", None),
    ("=", "n", 1),
    (">", "n", Number("2.5")),
    (">", "i", Number("2.5")),
    ("=", "d", 1),
    ("<", "l", Number("1e3")),
    *(("neg", a) for a in "bhilfdnopqwv"),
    *(("abs", a) for a in "bhilfdnopqwv"),
    *((name, a) for name in ("ceil", "floor") for a in "bilcenopqwv"),
    *(("round", a) for a in "bhilnopqwv"),
    *(("round", a) for a in "dce"),
    *(("round", a, digits) for a in "dce" for digits in (1, 2, 3)),
    *(("cast", "c", type_) for type_ in ("decimal(10,2)", "decimal(5,0)")),
    ("cast", "e", "decimal(20,12)"),
    *(("round", a, digits) for a in "inopqw" for digits in (1, 2, 3, -1, -2)),
    *((name, a) for name in ("sqrt", "exp", "ln", "log10", "log2", "sign", "cbrt", "degrees", "radians", "atan") for a in "dcein"),
    ("power", "c", 2),
    ("power", "e", "c"),
    ("power", "d", 0),
    ("power", "d", Number("0.5")),
    ("atan2", "c", "e"),
    ("atan2", "d", "e"),
    ("log", "c"),
    ("isnan", "d"),
    ("isnan", "f"),
    ("isnan", "i"),
    ("between", "n", Number("0.05"), 100),
    ("between", "i", "j", "l"),
    ("in", "i", 1, 7, None),
    ("in", "n", 1, Number("2.5")),
    ("in", "d", 1, "e", "c"),
    ("in", "l", "i", "j"),
    *((op, "t", "u") for op in ("and", "or")),
    ("not", "t"),
    ("case", ("and", ("<>", "i", 0), (">", ("/", "j", "i"), 1)), 1, 0),
    *((op, a) for op in ("isnull", "isnotnull") for a in "idnt"),
    ("case", "t", "i", "u", "l", "n"),
    ("case", ("=", "n", 1), "n", 0),
    ("case", "t", 1, 0),
    ("case", "t", "n"),
    ("case", ("<>", "i", 0), ("/", "j", "i")),
    ("if", "t", "d", "i"),
    ("nullif", "i", "j"),
    ("nullif", "n", 1),
    ("nvl2", "i", "n", "d"),
    ("decode", "j", 1, Text("one"), 2, Text("two"), Text("more")),
    ("coalesce", "i", "l", "n"),
    ("coalesce", "n", 0),
    ("coalesce", "d", "i", 0),
    ("nvl", "b", "i"),
    *(
        (name, a, b)
        for name in ("greatest", "least")
        for a, b in (("i", "l"), ("n", "o"), ("d", "e"), ("f", "d"), ("n", 1), ("i", "n"), ("t", "u"))
    ),
    ("greatest", "i", "j", None),
    *(("cast", a, type_) for a in "bhil" for type_ in ("bigint", "decimal(20,3)", "double", "float", "string", "boolean")),
    ("cast", "l", "decimal(38,18)"),
    ("cast", "b", "smallint"),
    *(
        ("cast", a, type_)
        for a in "nopq"
        for type_ in ("bigint", "decimal(30,6)", "decimal(22,1)", "decimal(38,0)", "double", "string", "boolean")
    ),
    ("cast", "p", "int"),
    *(("cast", a, type_) for a in "wv" for type_ in ("double", "string", "decimal(38,3)")),
    ("cast", "v", "bigint"),
    *(("cast", "c", type_) for type_ in ("tinyint", "int", "bigint", "float", "boolean")),
    *(("cast", a, type_) for a in "df" for type_ in ("boolean", "double")),
    ("cast", "g", "int"),
    *(("cast", "t", type_) for type_ in ("int", "bigint", "double", "float", "decimal(5,2)", "string")),
    *(("try_cast", a, type_) for a in "il" for type_ in ("tinyint", "int", "decimal(4,1)")),
]

EXTREMES = [
    *(
        (op, a, b)
        for op in ("=", "<", ">=", "<=>")
        for a, b in (
            ("b", "i"),
            ("i", "l"),
            ("l", "d"),
            ("l", "n"),
            ("f", "d"),
            ("d", "d"),
            ("n", "v"),
            ("v", "x"),
            ("l", "f"),
        )
    ),
    *(("cast", a, "bigint") for a in "bhi"),
    *(("cast", a, "double") for a in "bhilnvxf"),
    *(("cast", a, "string") for a in "bhilnv"),
    ("cast", "l", "decimal(38,10)"),
    ("cast", "n", "bigint"),
    ("cast", "x", "decimal(38,20)"),
    *((name, a, b) for name in ("greatest", "least") for a, b in (("i", "l"), ("d", "f"), ("n", "v"))),
    *(("sign", a) for a in "dfil"),
    *(("isnan", a) for a in "df"),
    *(("try_cast", "l", type_) for type_ in ("tinyint", "smallint", "int", "decimal(5,0)")),
    ("+", "d", 1),
    ("*", "d", 2),
    ("neg", "d"),
    ("abs", "d"),
    ("+", "f", "f"),
    ("ceil", "n"),
    ("floor", "n"),
    ("round", "x", 3),
]

WORDS = [
    *((name, "s") for name in ("trim", "ltrim", "rtrim", "btrim", "length", "char_length", "octet_length")),
    ("btrim", "s", Text("a ")),
    ("ltrim", Text(" a"), "s"),
    ("rtrim", Text("c "), "s"),
    *(
        (op, "s", "r")
        for op in (
            "=",
            "<",
            ">",
            "<=>",
            "<>",
            "||",
            "concat",
            "startswith",
            "endswith",
            "contains",
            "nullif",
            "coalesce",
            "greatest",
            "least",
        )
    ),
    ("concat", "s", "k", "r"),
    ("concat", "s", Text("-"), None),
    *(
        ("like", "s", Text(pattern))
        for pattern in (
            "%a%",
            "a%",
            "%c",
            "_",
            "__",
            "",
            "%",
            "a_c",
            "x\\%y",
            "x\\_y",
            "x\\\\y",
            "%日%",
            "_日%",
            "forest%",
            "%special%requests%",
            "%BRUSHED",
            "a%c%",
        )
    ),
    ("like", "s", Text("x!%y"), Text("!")),
    ("like", "s", None),
    ("not", ("like", "s", Text("%a%"))),
    *(("substring", "s", start) for start in (-20, -2, 0, 1, 2, 5)),
    *(("substring", "s", start, length) for start in (-20, -3, -1, 0, 1, 3) for length in (-1, 0, 1, 2, 18)),
    ("substr", "s", 1, 2),
    *((name, "s", count) for name in ("left", "right") for count in (-1, 0, 1, 3)),
    *((name, "s", "k") for name in ("left", "right")),
    ("replace", "s", "r", Text("<>")),
    ("replace", "s", Text("a")),
    ("in", "s", Text("a"), Text(""), "r"),
    ("case", ("=", "s", Text("a")), "r", ("like", "s", Text("P%")), Text("promo"), "s"),
    ("cast", "k", "string"),
    ("coalesce", "s", Text("none")),
    ("isnull", "s"),
    ("decode", "s", Text("a"), 1, None, 2, 3),
    ("instr", "s", "r"),
    ("instr", "s", Text("b")),
    ("locate", "r", "s"),
    ("locate", Text("a"), "s", 2),
    ("position", Text("a"), "s"),
    *((name, "s", "k", padding) for name in ("lpad", "rpad") for padding in (Text("xy"), Text("日"), Text(""), "r")),
    *((name, "s", 6) for name in ("lpad", "rpad")),
    ("repeat", "r", "k"),
    ("concat_ws", Text("-"), "s", "r", "k"),
    ("concat_ws", "r", "s", "s"),
    ("concat_ws", Text("-")),
    *(("split_part", "s", Text(delimiter), part) for delimiter in (",", "X", "aa") for part in (1, 2, 5, -1, -3)),
    ("ascii", "s"),
    ("translate", "s", Text("aX日"), Text("b")),
    ("translate", "s", Text("ab"), Text("xyz")),
    ("like", "s", "r"),
]
"""Text on which the native kernel answers by itself."""

GUARDED_WORDS = [
    *((name, "s") for name in ("upper", "lower", "reverse", "ucase", "lcase")),
    ("ilike", "s", Text("%A%")),
    ("ilike", "s", Text("abc")),
]
"""Text functions that leave letters beyond ASCII to Spark."""

NUMERALS = [
    *(("cast", "whole", type_) for type_ in ("int", "bigint")),
    *(("cast", "whole", type_) for type_ in ("decimal(10,2)", "double")),
    *(("cast", "point", type_) for type_ in ("decimal(10,2)", "decimal(20,6)", "double")),
    ("cast", "science", "double"),
    ("cast", "day", "date"),
    ("to_date", "day"),
    ("cast", "truth", "boolean"),
    ("cast", "moment", "timestamp"),
    ("cast", "moment", "timestamp_ntz"),
    *(("cast", "stamp", type_) for type_ in ("timestamp", "timestamp_ntz")),
    ("hour", "moment"),
    ("=", "whole", 7),
    (">", "whole", Number("1.5")),
    ("+", "whole", 1),
    ("*", "science", Number("2.0")),
    ("=", "day", ("date", "2020-02-29")),
    ("year", "day"),
]

MOMENTS = [
    *(
        (name, "dt")
        for name in (
            "year",
            "quarter",
            "month",
            "day",
            "dayofmonth",
            "dayofweek",
            "weekday",
            "dayofyear",
            "weekofyear",
            "last_day",
            "unix_date",
        )
    ),
    *(("extract", Text(unit), "dt") for unit in ("year", "quarter", "month", "week", "day", "dow", "doy")),
    *((name, "dt", "k") for name in ("date_add", "date_sub", "add_months", "+", "-")),
    ("+", "dt", 30),
    ("-", "dt", ("interval", "90", "DAY")),
    ("+", "dt", ("interval", "3", "MONTH")),
    ("-", "dt", ("interval", "1", "YEAR")),
    ("+", "dt", ("interval", "2", "WEEK")),
    ("datediff", "dt", "du"),
    *((op, "dt", "du") for op in ("=", "<", ">=", "<=>", "greatest", "coalesce")),
    ("<=", "dt", Text("1998-09-02")),
    ("<", "dt", ("+", ("date", "1994-01-01"), ("interval", "1", "YEAR"))),
    ("between", "dt", ("date", "1970-01-01"), ("date", "2020-12-31")),
    *(("trunc", "dt", Text(unit)) for unit in ("year", "quarter", "month", "week", "MM")),
    ("cast", "dt", "string"),
    ("cast", "tn", "date"),
    ("cast", "dt", "timestamp_ntz"),
    *((name, "tn") for name in ("hour", "minute", "second", "year", "dayofweek")),
    ("make_date", ("year", "dt"), ("month", "du"), 28),
    ("date", "2020-02-29"),
]
"""Dates and local timestamps: no time zone takes part."""

INSTANTS = [
    *(
        (name, "ts")
        for name in (
            "year",
            "month",
            "day",
            "dayofweek",
            "hour",
            "minute",
            "second",
            "quarter",
            "weekofyear",
            "last_day",
        )
    ),
    *(
        ("date_trunc", Text(unit), "ts")
        for unit in (
            "year",
            "quarter",
            "month",
            "week",
            "day",
            "hour",
            "minute",
            "second",
            "millisecond",
            "microsecond",
        )
    ),
    ("trunc", "ts", Text("month")),
    ("cast", "ts", "date"),
    ("cast", "dt", "timestamp"),
    ("cast", "ts", "double"),
    ("cast", "ts", "timestamp_ntz"),
    ("cast", "ts", "string"),
    ("cast", "tn", "string"),
    ("cast", "ts", "bigint"),
    *((op, "ts", "tu") for op in ("=", "<", ">=", "<=>", "greatest", "coalesce")),
    (">", "ts", "dt"),
    ("datediff", "ts", "dt"),
    ("date_add", "ts", 1),
    *(
        (op, "ts", ("interval", amount, unit))
        for op in "+-"
        for amount, unit in (("1", "DAY"), ("36", "HOUR"), ("90", "MINUTE"), ("15", "SECOND"))
    ),
    ("+", "tn", ("interval", "1", "MONTH")),
    ("-", "tn", ("interval", "36", "HOUR")),
    ("+", "dt", ("interval", "6", "HOUR")),
]
"""Instants: checked in several time zones."""

UTC_INSTANTS = [
    *((op, "ts", ("interval", "1", unit)) for op in "+-" for unit in ("MONTH", "YEAR")),
    ("cast", "tn", "timestamp"),
]
"""Instants whose clock time matters in a way the engines only share in UTC; elsewhere they are left to Spark."""
