"""Prices: by the model of a GPU, by its memory where the model is not known, and what they are of."""

from pathlib import Path

import pytest

from scheduler.audit import words
from scheduler.audit.findings import About, Question, audit_cluster
from scheduler.audit.prices import book
from scheduler.config import Config
from scheduler.documents import writing
from scheduler.errors import BadInput
from tests import make

ABOUT = About(made="", source="", version="")


def value(
    *nodes: object, prices: book.PriceBook | None = None
) -> tuple[float, list[dict[str, object]]]:
    """Dollars a month of all GPUs, and how their models were counted."""
    question = Question(
        config=Config(), modes=(), prices=prices or book.read_packaged(), worst=0, about=ABOUT
    )
    found = audit_cluster(nodes, [], question)  # type: ignore[arg-type]
    by_figure = found["total"]["value"]["capacity"]
    plain = sum(
        found["total"]["capacity"][key] * found["prices"][unit]
        for key, unit in (("cpu", "cpu-core"), ("memory", "memory-gib"))
    )
    return round(by_figure - plain, 2), found["gpuModels"]


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("NVIDIA-Tesla T4", "T4"),
        ("nvidia-tesla-t4", "T4"),
        ("NVIDIA-NVIDIA A10G", "A10G"),
        ("NVIDIA A10", "A10"),
        ("NVIDIA-A100-SXM4-80GB", "A100*80GB"),
        ("NVIDIA A100 80GB PCIe", "A100*80GB"),
        ("NVIDIA-A100-SXM4-40GB", "A100"),
        ("NVIDIA H100 PCIe", "H100*PCIe"),
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA GH200 480GB", "GH200"),
        ("NVIDIA H200", "H200"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA L4", "L4"),
        ("Tesla P40", None),
        ("G2", None),
        ("", None),
    ],
)
def test_a_model_is_known_by_the_names_that_plugins_and_labels_write(
    name: str, match: str | None
) -> None:
    found = book.read_packaged().find_model(name)
    assert (found.match if found else None) == match


def test_every_price_says_where_it_is_from() -> None:
    models = book.read_packaged().models
    assert len(models) > 15
    assert len({one.match for one in models}) == len(models)
    assert all(one.source.startswith(("list: ", "estimate: ")) for one in models)
    assert all("https://" in one.source for one in models if one.source.startswith("list: "))


def test_gpus_cost_what_their_model_costs_and_unknown_ones_by_their_memory() -> None:
    t4 = make.hami_node(name="t4", cards=2)
    odd = make.hami_node(name="odd", cards=[make.card(model="Odd 1", mib=24 * 1024)])
    price = book.read_packaged().find_model("T4")
    assert price is not None
    found, models = value(t4, odd)
    assert found == pytest.approx(2 * price.price + 150 + 24 * 50)
    assert [(one["model"], one["gpus"]) for one in models] == [("Odd-1", 1), ("Tesla-T4", 2)]
    assert models[0]["source"] == "model not in the list; priced by its 24 GiB of memory"
    assert models[1]["source"] == price.source


def test_a_model_is_one_however_often_its_maker_is_written_before_it() -> None:
    """HAMi's plugin writes the maker before a name that begins with it, and a label writes it once."""
    cards = [make.card(model="NVIDIA-NVIDIA A100-SXM4-80GB", mib=80 * 1024)]
    label = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}
    nodes = make.hami_node(name="a", cards=cards), make.node(name="b", gpus=8, labels=label)
    (one,) = value(*nodes)[1]
    assert (one["model"], one["gpus"]) == ("A100-SXM4-80GB", 9)
    assert one["names"] == ["NVIDIA-NVIDIA A100-SXM4-80GB", "NVIDIA-A100-SXM4-80GB"]
    prices = book.read_flags(None, ["NVIDIA-NVIDIA A100-SXM4-80GB=7"])
    apart = value(*nodes, prices=prices)[1]
    assert [(one["gpus"], one["price"]) for one in apart] == [(8, 1824), (1, 7)]


def test_a_gpu_without_known_memory_costs_its_model_s_price() -> None:
    """By its memory, which is not told, it would have cost next to nothing."""
    label = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}
    found, models = value(make.node(name="a", gpus=8, labels=label))
    assert found == 8 * 1824
    assert [(one["model"], one["gpus"], one["price"]) for one in models] == [
        ("A100-SXM4-80GB", 8, 1824)
    ]
    found, models = value(make.node(name="a", gpus=1))
    assert found == 150 + 16 * 50
    assert (
        models[0]["source"]
        == "model not in the list, memory not reported; priced as a GPU of 16 GiB"
    )


def test_a_user_s_file_goes_before_the_list_and_flags_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    mine = {"gpu": 1000, "cpu-core": 20, "gpu-models": [{"match": "A100", "price": 99}]}
    file.write_text(writing.dump(mine), encoding="utf-8")
    prices = book.read_flags(file, ["cpu-core=7.5"])
    assert prices.units == {
        "cpu-core": 7.5, "memory-gib": 4.31, "gpu": 1000.0, "gpu-memory-gib": 50.0
    }  # fmt: skip
    of_file = prices.find_model("NVIDIA-A100-SXM4-80GB")
    assert of_file is not None
    assert (of_file.price, of_file.source) == (99, f"--prices {file}")
    flags = ["A100=1", "NVIDIA-A100-SXM4-80GB=1500", "A100*=3"]
    of_flag = book.read_flags(file, flags[:2]).find_model("NVIDIA A100-SXM4-80GB")
    assert of_flag is not None
    assert (of_flag.price, of_flag.source) == (1500, "--price")


def test_prices_of_cpu_and_memory_say_where_they_are_from(tmp_path: Path) -> None:
    packaged = book.read_packaged()
    assert packaged.sources.keys() == packaged.units.keys() == set(book.UNITS)
    assert all("https://" in source for source in packaged.sources.values())
    file = tmp_path / "p.yaml"
    file.write_text("cpu-core: 20\nunit-source: our bill of May\n")
    assert book.read_flags(file, []).sources["cpu-core"] == "our bill of May"
    file.write_text("cpu-core: 20\n")
    given = book.read_flags(file, ["memory-gib=2"]).sources
    assert (given["cpu-core"], given["memory-gib"]) == (f"--prices {file}", "--price")
    assert given["gpu"] == packaged.sources["gpu"]


def test_the_packaged_list_is_a_file_of_the_form_that_users_write() -> None:
    path = Path(book.__file__).with_name("prices.yaml")
    assert book.read_flags(path, []).units == book.read_packaged().units


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("gpus: 1", r"p\.yaml: gpus: is not known; allowed are cpu-core"),
        ("gpu: -1", r"p\.yaml: gpu: -1 is not a price per month within 0\.\."),
        ("gpu: .nan", r"p\.yaml: nan is not a number in JSON"),
        ("gpu: yes", r"p\.yaml: gpu: True is not a price"),
        ("gpu: dear", r"p\.yaml: gpu: 'dear' is not a price"),
        ("gpu-models: 3", r"p\.yaml: gpu-models: must be a list of match, price and source"),
        ("gpu-models: [{match: T4}]", r"gpu-models\[0\]: must have match and price"),
        ("gpu-models: [{match: T4, price: x}]", r"gpu-models\[0\]\.price: 'x' is not a price"),
        ("gpu-models: [{match: '*', price: 1}]", r"gpu-models\[0\]\.match: '\*' is neither a unit"),
        (
            "gpu-models: [{match: T4, price: 1, source: 2}]",
            r"gpu-models\[0\]\.source: must be text",
        ),
        ("model-labels: x", r"model-labels: must be a list of labels"),
        ("- 1", r"p\.yaml: must hold a mapping"),
        ("{", r"p\.yaml: line 2, column 1: a value is missing"),
    ],
)
def test_a_wrong_price_file_is_told_with_the_field(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match=told):
        book.read_flags(file, [])


def test_a_price_file_that_cannot_be_read_is_told_without_a_word_of_python(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xd0\x00")
    for name, said in (
        ("none", "there is no such file"),
        ("", "is a folder, not a file"),
        ("binary", "is not UTF-8 text"),
    ):
        with pytest.raises(BadInput) as refused:
            book.read_flags(tmp_path / name, [])
        assert str(refused.value) == f"--prices {tmp_path / name}: {said}"


@pytest.mark.parametrize("flag", ["gpu", "gpu=", "gpu=x", "gpu=-1", "gpu=inf", "T4=", "*=1", "=1"])
def test_a_wrong_price_flag_is_refused(flag: str) -> None:
    with pytest.raises(BadInput, match="--price"):
        book.read_flags(None, [flag])


def test_a_flag_that_counts_for_nothing_is_told() -> None:
    """A unit that is mistyped would else be a model that is not there."""
    prices = book.read_flags(None, ["cpu-cores=30", "T4=5", "cpu-core=30"])
    question = Question(config=Config(), modes=(), prices=prices, worst=0, about=ABOUT)
    found = audit_cluster([make.hami_node(name="t4")], [], question)
    assert found["pricesUnused"] == ["cpu-cores"]
    told = [line for line in words.describe_prices(found) if "has no effect" in line]
    assert [line.split()[1] for line in told] == ["cpu-cores"]
