"""Generator expressions: what parses, what is refused and how, and that writing and parsing are inverse."""

from fractions import Fraction

import pytest
from cwb.core.errors import InputError
from cwb.instances.expression import MAX_DEPTH, MAX_DIGITS, MAX_LENGTH, Expression, is_expression, parse_expression
from draws import draws
from hypothesis import given, settings
from hypothesis import strategies as st

names = st.from_regex(r"[a-z][a-z0-9_]{0,12}", fullmatch=True)
integers = st.integers(-(10**MAX_DIGITS) + 1, 10**MAX_DIGITS - 1)
decimals = st.builds(
    lambda digits, places: Fraction(digits, 10**places),
    st.integers(-(10**MAX_DIGITS) + 1, 10**MAX_DIGITS - 1),
    st.integers(1, MAX_DIGITS),
)
texts = st.text(max_size=30).filter(str.isprintable) | st.sampled_from(["gpt-3", "true", "FALSE", "4d", "RI(4)_SW(2)"])
values = st.recursive(
    integers | decimals | texts | st.booleans(),
    lambda inner: (
        st.lists(inner, max_size=4).map(tuple)
        | st.builds(
            Expression, names, st.lists(inner, max_size=2).map(tuple), st.dictionaries(names, inner, max_size=1)
        )
    ),
    max_leaves=8,
)
expressions = st.builds(
    Expression, names, st.lists(values, max_size=4).map(tuple), st.dictionaries(names, values, max_size=4)
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("torus(8,8)", Expression("torus", (8, 8))),
        ("mi250(boxes=2)", Expression("mi250", (), {"boxes": 2})),
        ("circulant(n=15, offsets=[1,4,5])", Expression("circulant", (), {"n": 15, "offsets": (1, 4, 5)})),
        (
            'libra(workload=gpt-3, dims="RI(4)_FC(8)_RI(4)_SW(32)")',
            Expression("libra", (), {"workload": "gpt-3", "dims": "RI(4)_FC(8)_RI(4)_SW(32)"}),
        ),
        ('torus(4, 4, bandwidth="25 GiB/s")', Expression("torus", (4, 4), {"bandwidth": "25 GiB/s"})),
        (" DGX-A100 ( Boxes\n=\t2 ) ", Expression("dgx_a100", (), {"boxes": 2})),
        ("f()", Expression("f")),
        ("f(-3, +4, 2.50, -0.1)", Expression("f", (-3, 4, Fraction(5, 2), Fraction(-1, 10)))),
        ("f(true, False, truth)", Expression("f", (True, False, "truth"))),
        ("f([], [[1], [a, 'b c']])", Expression("f", ((), ((1,), ("a", "b c"))))),
        (
            "L(K-2(3), g(x=[h()]))",
            Expression("l", (Expression("k_2", (3,)), Expression("g", (), {"x": (Expression("h"),)}))),
        ),
        (r"""f("say \"hi\" \\", 'it\'s')""", Expression("f", ('say "hi" \\', "it's"))),
    ],
)
def test_reads(text, expected):
    """Every kind of argument is read, and names do not depend on case or on '-' against '_'."""
    assert parse_expression(text) == expected
    assert is_expression(text)


def test_numbers_stay_exact():
    """Integers are int and decimals are Fraction, so that 0.1 is a tenth and 2 is no decimal."""
    whole, tenth = parse_expression("f(2, 0.1)").positional
    assert type(whole) is int
    assert tenth == Fraction(1, 10)
    assert type(tenth) is Fraction


@given(expressions)
def test_round_trip(expression):
    """The text of str() is parsed to the same expression, types included, and is on one line."""
    text = str(expression)
    parsed = parse_expression(text)
    assert parsed == expression
    assert str(parsed) == text
    assert len(text.splitlines()) == 1


@given(expressions, st.sampled_from([" ", "\n", " \t "]))
def test_space_between_tokens_does_not_matter(expression, space):
    """White space may stand between any two tokens."""
    plain = Expression(expression.name, tuple(range(len(expression.positional))), dict.fromkeys(expression.keywords, 1))
    for mark in "(),=":
        plain_text = str(plain).replace(" ", "").replace(mark, f"{space}{mark}{space}")
        assert parse_expression(plain_text) == plain


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the text ends at column 1; expected the name of a generator"),
        ("torus", "the text ends at column 6; expected '(' after the name"),
        ("torus(", "the text ends at column 7; expected a value"),
        ("torus(8,,8)", "unexpected ',' at column 9; expected a value"),
        ("torus(8,)", "unexpected ')' at column 9; expected a value"),
        ("torus(8 8)", "unexpected '8' at column 9; expected ',' or ')'"),
        ("torus(8)(8)", "unexpected '(' at column 9; expected nothing after the closing ')'"),
        ("torus(8(2))", "unexpected '(' at column 8; expected ',' or ')'"),
        ("torus([1 2])", "unexpected '2' at column 10; expected ',' or ']'"),
        (
            "f(a=1, 2)",
            "unexpected '2' at column 8; expected another name=value, since arguments without a name come first",
        ),
        ("f(a=1, A=2)", "argument 'a' at column 8 is given twice; expected once"),
        ("f(a.b=1)", "unexpected 'a.b' at column 3; expected the name of an argument"),
        ("8(2)", "unexpected '8' at column 1; expected the name of a generator"),
        ("f(50GB)", "unexpected '50GB' at column 3; expected a value; text that begins with a digit needs quotes"),
        ("f(1e3)", "unexpected '1e3' at column 3; expected a value; text that begins with a digit needs quotes"),
        ("f(.5)", "unexpected '.' at column 3; expected a value"),
        ("f(@)", "unexpected '@' at column 3; expected a value"),
        ("f('a\nb')", "unexpected \"'a\\nb'\" at column 3; expected printable characters in a string"),
        (
            "f('a)",
            "a string begins and does not end at column 3; expected a closing ', and a backslash only before ' or "
            "another backslash",
        ),
    ],
)
def test_refuses(text, message):
    """An error says what is wrong, at which column, and what was expected."""
    with pytest.raises(InputError) as caught:
        parse_expression(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "text",
    [
        "f(" + "1," * MAX_LENGTH + "1)",
        "f(" + "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1) + ")",
        f"f({'1' * (MAX_DIGITS + 1)})",
        f"f(1.{'1' * (MAX_DIGITS + 1)})",
    ],
    ids=["length", "depth", "digits", "places"],
)
def test_bounds(text):
    """Length, nesting and the digits of a number are bounded."""
    with pytest.raises(InputError, match="at most"):
        parse_expression(text)


def test_bounds_are_allowed():
    """Values just within the bounds are accepted."""
    digits = "9" * MAX_DIGITS
    nested = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert parse_expression(f"f({digits}.{digits}, {nested})").name == "f"


@pytest.mark.parametrize("text", ["", "4d", "instances/4d.json", "torus", "torus(8", "8(2)", "RI 4)", "(8)", "a.b(1)"])
def test_no_expression(text):
    """File names, instance names and halves of an expression are not taken for one."""
    assert not is_expression(text)


fragments = st.sampled_from(
    [*"()[]=,.+-_\\'\" \n\x00\u2028é", "torus", "gpt-3", "true", "25", "0.5", '"x y"', "n=", "1e9"]
)


@given(st.text(max_size=60) | st.lists(fragments, max_size=25).map("".join) | st.builds("f({})".format, st.text()))
@settings(max_examples=draws(500))
def test_any_text_is_parsed_or_refused_in_one_line(text):
    """Random text raises nothing but an InputError of one line, and what parses has the shape of an expression."""
    try:
        parse_expression(text)
    except InputError as error:
        assert len(str(error).splitlines()) == 1
    else:
        assert is_expression(text)


def test_nothing_is_evaluated():
    """Python in an expression is text, or refused."""
    assert parse_expression("f(\"__import__('os').abort()\")").positional == ("__import__('os').abort()",)
    with pytest.raises(InputError):
        parse_expression("f(__import__('os').abort())")
