"""Numbers as the text of the documents has them."""
import math
import re

import jinja2
import pytest

import compare
import document_multipliers
import document_record
import render
from conftest import ROOT


def test_a_span_has_all_its_values():
    assert document_record.span([2.7, 1]) == "1.00 to 2.70"
    for values in ([2.7, math.nan], [math.nan, 2.7]):
        with pytest.raises(ValueError, match="no text of"):
            document_record.span(values)


def test_text_has_its_parts():
    """Sources compute with the number, and take parts of a text by name; what is not there they cannot name."""
    for values, starred in (([1, 2], "1.50 ± 0.71"), ([1, math.nan, 2], "1.50 ± 0.71*")):
        text = document_record.mean(values)
        assert (text.value, text.number, text.starred) == ("1.50", 1.5, starred)
    assert not hasattr(document_record.mean([1, math.nan]), "starred"), "a star says that two of three are there"
    nothing = document_record.mean([math.nan])
    assert nothing.starred == "–" and not hasattr(nothing, "number")
    span = document_record.span([2.7, 1], sign="+")
    assert (span, span.low, span.high) == ("+1.00 to +2.70", "+1.00", "+2.70")
    interval = document_record.with_interval(compare.Difference(0.5, -0.001, 1.001, 0.05, 3))
    assert (interval.value, interval.low, interval.high) == ("+0.50", "-0.00", "+1.00")
    with pytest.raises(jinja2.UndefinedError):
        render.ENVIRONMENT.from_string("{{ mean.number }}").render(mean=nothing)


@pytest.mark.parametrize("source", render.DOCUMENTS)
def test_sources_take_no_text_apart(source):
    """They take its parts by name: a word of it by its place, or a "–" as a number, is silently another."""
    text = (ROOT / source).read_text(encoding="utf-8")
    assert re.findall(r'\.split\(|\|int\b|\.replace\(" ', text) == []


def test_what_is_unknown_is_no_number():
    """It may not stand as "nan" in a sentence."""
    unknown = compare.welch([1.0], [2.0])
    for as_text in (document_record.with_interval, document_record.bounds, lambda one: document_record.p_value(one.p)):
        with pytest.raises(ValueError, match="no text of"):
            as_text(unknown)


@pytest.mark.parametrize("p, text", [
    (0.00049, "< 0.001"), (0.00051, "0.001"), (0.0494, "0.049"), (0.0994, "0.099"), (0.0996, "0.10"), (1.0, "1.00")])
def test_probabilities_as_text(p, text):
    assert document_record.p_value(p) == text


def test_a_bound_that_rounds_to_zero_keeps_its_side():
    assert document_record.with_interval(compare.Difference(0.5, -0.001, 1.001, 0.05, 3)) == "+0.50 (-0.00 to +1.00)"


def test_seeds_that_are_left_out_are_counted():
    assert document_record.mean([1, 2]) == "1.50 ± 0.71" and document_record.mean([math.nan]) == "–"
    assert document_record.mean([1, math.nan, 2]) == "1.50 ± 0.71 (2 of 3)"
    assert document_record.mean([1, math.nan], 1) == "1.0 (1 of 2)"
    assert document_multipliers.own_plateau("half", "BCD-1/3 every 1e").endswith(" (2 of 3)")  # one came to none
