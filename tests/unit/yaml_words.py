"""Words and documents of YAML, for what kubectl reads there; tests/cluster asks kubectl itself."""

WORDS = ["y", "n", "Y", "N", "yes", "no", "Yes", "NO", "on", "off", "On", "OFF", "true", "True", "TRUE", "false", "tRUE", "null", "Null", "~", "NULL", "nULL", "0", "1", "-1", "+1", "017", "0o17", "0O17", "0x1F", "0X1f", "0b101", "-0b101", "-0x1F", "+0x1F", "08", "09", "-08", "00", "007", "1_000", "1__0", "_1", "1_", "0_7", "0x_1", "-", "+", "+-1", "1.0", "1.", ".5", "-.5", "+.5", "._5", ".5_0", "1e3", "1E3", "1e+3", "1e-3", "1.5e2", "-1e3", "1e", "1e400", "-1e400", "1.e2", ".5e1", ".", ".e1", "0.1", "1.10", "0.0000001", "12e03", "9223372036854775807", "-9223372036854775808", "0xFFFFFFFFFFFFFFFFF", "0b", "0x", "0o", "0o8", "0b2", "22:30", "23:45:10", "1:2", "-1:30", "190:20:30", "2001-01-01", "2001-1-1T1:2:3Z", "2001-12-14t21:59:43.10-05:00", "=", "=~", "'!='", "==", "<<", "4Gi", "100m", "1k", ".inf", "-.Inf", ".nan", ".infx", "NaN", "inf", "nil", "None", "'1'", '"1"', "'yes'", '"\\x41"', "a#c", "?x", "-x", "@x", "%x", "!!str|1", "!!int|'5'", "!!float|5", "!!bool|yes", "!!null|''", "!!str|yes", "!foo|bar", "!!binary|aGk=", "!!timestamp|2001-01-01", "!!int|x", "!|1"]  # fmt: skip
# Keys of one value.
KEYS = [
    "1",
    "y",
    "n",
    "0x10",
    "017",
    "1.5",
    "1e3",
    "1e6",
    "08",
    "1234567.0",
    "0.00001",
    "16777217.0",
    "2001-01-01",
    "true",
    "1_0",
    ".5",
    "0.1",
    "~",
    "9223372036854775808",
]
DOCUMENTS = (
    "{a: 1, <<: {a: 2, b: 3}}",
    "{<<: {a: 2, b: 3}, a: 1}",
    "{<<: [{a: 1}, {a: 2, c: 4}]}",
    "{'<<': {a: 1}}",
    "{<<: 3}",
    "{<<: [1]}",
    "{a: 1, a: 2}",
    "{? {a: b} : c}",
    "{? [a] : c}",
    "x: &x {a: 1}\nz: {a: 3, <<: *x}",
    "x: &x {p: {z: 1}}\nv:\n  <<: *x\n  p: {q: 2}",
    "x: &x {p: 1}\nv:\n  <<: [*x, *x]\n  q: 2",
    "x: &a [1]\nv: *a",
    "x: &a v\n*a : 3",
    "v: *nope",
    "v: [1, [2, y], {n: y}]",
    "v: |\n  a\n  b",
    "v: !!set {a, b}",
    "v: !!omap [a: 1]",
    "v: !foo {a: 1}",
    "v:\n- a\n-",
    "v: a: b",
    "\tv: 1",
    'v: "\\ud800"',
)


def texts() -> list[str]:
    """All of them as documents."""
    words = [f"v: {word.replace('|', ' ')}" for word in WORDS]
    return [*words, *(f"{key}: v" for key in KEYS), *DOCUMENTS]


def thing(text: str) -> str:
    """An object that has one of the texts as its spec."""
    lines = text.replace("\n", "\n  ")
    return f"apiVersion: example.org/v1\nkind: Thing\nmetadata: {{name: x}}\nspec:\n  {lines}\n"
