"""Quantities as Kubernetes reads them, to the last odd case."""

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from scheduler.api import quantities
from scheduler.api.quantities import INT64_MAX, BadQuantity
from tests.oracles import quantities as twin

READ = [
    # text, thousandths, units
    ("0", 0, 0), ("-0", 0, 0), ("+0", 0, 0), ("00012", 12_000, 12), ("+5", 5_000, 5),
    (".5", 500, 1), ("5.", 5_000, 5), ("0.5", 500, 1), ("1.5", 1_500, 2), ("-0.000", 0, 0),
    ("1n", 1, 1), ("1u", 1, 1), ("1m", 1, 1), ("1000m", 1_000, 1), ("1001m", 1_001, 2),
    ("999999n", 1, 1), ("1000001n", 2, 1), ("100u", 1, 1), ("1001u", 2, 1), ("0.0001", 1, 1),
    ("0.1n", 1, 1), ("0.00000000000000001", 1, 1), ("1e-30", 1, 1), ("0e-30", 0, 0),
    ("1k", 10**6, 10**3), ("1M", 10**9, 10**6), ("1G", 10**12, 10**9), ("1T", 10**15, 10**12),
    ("1P", 10**18, 10**15), ("1E", INT64_MAX, 10**18), ("10E", INT64_MAX, INT64_MAX),
    ("1Ki", 1_024_000, 1024), ("1Mi", 2**20 * 1000, 2**20), ("1Gi", 2**30 * 1000, 2**30),
    ("1Ti", 2**40 * 1000, 2**40), ("1Pi", 2**50 * 1000, 2**50), ("1Ei", INT64_MAX, 2**60),
    ("8Ei", INT64_MAX, INT64_MAX), ("0.5Ki", 512_000, 512), ("0.1Ki", 102_400, 103),
    ("1.1Mi", 1_153_433_600, 1_153_434), ("0.0000001Ki", 1, 1),
    ("1e3", 10**6, 10**3), ("1E3", 10**6, 10**3), ("1e+3", 10**6, 10**3), ("1E-3", 1, 1),
    ("12e-1", 1_200, 2), ("1.5e3", 1_500_000, 1_500), ("1e0", 1_000, 1), ("0.001e3", 1_000, 1),
    ("9223372036854775807", INT64_MAX, INT64_MAX), ("9223372036854775808", INT64_MAX, INT64_MAX),
    ("9223372036854775.807", INT64_MAX, 9223372036854776), ("9223372036854775.8061", INT64_MAX, 9223372036854776),
    ("1e1000000000000", INT64_MAX, INT64_MAX), ("1e-1000000000000", 1, 1), ("0e99999999999", 0, 0),
    (1, 1_000, 1), (0.5, 500, 1), (1e22, INT64_MAX, INT64_MAX), (1e-7, 1, 1), (2.0, 2_000, 2),
]  # fmt: skip


@pytest.mark.parametrize(("text", "thousandths", "units"), READ)
def test_a_quantity_is_rounded_up_and_capped(
    text: str | float, thousandths: int, units: int
) -> None:
    assert quantities.read_milli(text) == thousandths
    assert quantities.read_value(text) == units


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "1 ", " 1", "1\n", "+", "-", ".", "..", "1.2.3", "--1", "+-1", "1-", "1+1", "0x10", "1_000", "1,5",
        "K", "1K", "1ki", "1mi", "1KI", "1Mib", "1kk", "1km", "1mm", "m", "Ki", "1i", "1B", "1 Gi", "1g", "1t",
        "1e", "1e+", "e3", "1e3.5", "1e3k", "1Ee3", "1Ei3", "1eE", "1E3Ki", "nan", "inf", "-inf", "Infinity", "None", "True",
        "١", "１", "1²", "½", "1e²", "1\u00a0", "µ", "1µ", "1e−3", "−1",
    ],
)  # fmt: skip
def test_what_is_no_quantity_is_refused_and_quoted(text: str) -> None:
    for read in (quantities.read_milli, quantities.read_value):
        with pytest.raises(BadQuantity) as refused:
            read(text)
        assert str(refused.value).startswith(f'"{text}" is not a quantity: write a number')


@pytest.mark.parametrize("text", ["-1", "-1m", "-0.0000000000001", "-1e-400", "-1Ei", -1, -0.5])
def test_a_negative_quantity_is_refused_as_such(text: str | float) -> None:
    with pytest.raises(BadQuantity, match="is negative: a quantity here must be 0 or more"):
        quantities.read_milli(text)


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("9" * 100_000, INT64_MAX),
        ("0." + "0" * 100_000 + "1", 1),
        ("0" * 100_000 + "7", 7),
        ("1" + "0" * 100_000 + "e-100000", 1),
        ("0." + "0" * 99_999 + "3e100000", 3),
        ("1." + "0" * 100_000, 1),
        ("1." + "0" * 100_000 + "1", 2),
        ("1e" + "9" * 100_000, INT64_MAX),
        ("1e-" + "9" * 100_000, 1),
        ("1e" + "0" * 100_000 + "3", 1000),
    ],
    ids=range(10),
)
def test_a_text_of_any_length_is_read_at_once(text: str, units: int) -> None:
    began = time.perf_counter()
    assert quantities.read_value(text) == units
    assert time.perf_counter() - began < 0.1


def test_a_long_text_that_is_no_quantity_is_quoted_in_short() -> None:
    with pytest.raises(BadQuantity) as refused:
        quantities.read_value("x" * 10_000)
    assert len(str(refused.value)) < 300


numbers = st.from_regex(r"[+-]?[0-9]{0,25}(\.[0-9]{0,25})?", fullmatch=True)
suffixes = st.sampled_from(sorted(twin.SUFFIXES)) | st.from_regex(
    r"[eE][+-]?[0-9]{1,3}", fullmatch=True
)


@given(st.builds(str.__add__, numbers, suffixes) | st.text("0123456789.+-eEinumkKMGTP", max_size=9))
@example("1e-40")
@example("0.9999999999999999999999999Ei")
def test_any_text_reads_as_the_exact_fraction_rounded_up(text: str) -> None:
    for read, times in ((quantities.read_milli, 1000), (quantities.read_value, 1)):
        wanted = twin.scaled(text, times)
        if wanted is None:
            with pytest.raises(BadQuantity):
                read(text)
        else:
            assert read(text) == wanted


def test_long_texts_are_read_and_not_kept() -> None:
    before = quantities._parse_any.cache_info().currsize
    for i in range(50):
        assert quantities.read_value(f"1.{'0' * 1000}{i + 1}") == 2
    assert quantities._parse_any.cache_info().currsize == before
