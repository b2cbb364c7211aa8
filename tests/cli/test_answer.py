"""What commands found, printed for programs or for people."""

import json

from rich.table import Table

from simstate.cli.answer import Answer, present


def table():
    found = Table(title="found")
    found.add_column("column")
    found.add_row("cell")
    return found


def test_numbers_that_json_does_not_have_are_null(capsys):
    nan, inf = float("nan"), float("inf")
    facts = {"a": nan, "b": [1.5, -inf, {"c": (inf, 2)}], "d": "NaN", "e": True}
    assert present(Answer(facts, ["not printed"], code=3), as_json=True) == 3
    out = capsys.readouterr().out

    def refuse(name):
        raise AssertionError(f"{name} is no JSON")

    found = json.loads(out, parse_constant=refuse)
    assert found == {
        "a": None,
        "b": [1.5, None, {"c": [None, 2]}],
        "d": "NaN",
        "e": True,
    }


def test_text_is_printed_as_it_is_and_tables_as_tables(capsys):
    line = "a [bold]word[/] and [m/s], " + "long " * 60
    assert present(Answer({"x": 1}, [line, table()]), as_json=False) == 0
    out = capsys.readouterr().out
    assert line.rstrip() in out
    assert "cell" in out
    assert '"x"' not in out
