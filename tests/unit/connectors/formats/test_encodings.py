# ruff: noqa: RUF001  letters of other scripts are what is tested
"""The encoding of a text file: UTF-8 is always recognised, and a guessed encoding is reported as a guess."""

from __future__ import annotations

import random

import pytest

from connectors.formats.csv import Csv
from connectors.formats.text import detect_encoding
from ingestd.sdk import NOTICE
from tests.support.format_records import read

WORDS = {
    "windows-1251": "деталь масса примечание болт гайка шайба корпус крышка подшипник давление Москва ДАТЧИК расход",
    "koi8-r": "деталь масса примечание болт гайка шайба корпус крышка подшипник давление температура",
    "iso-8859-2": "część śruba łożysko nakrętka żółty ciśnienie źródło ćwiczenie próba łącznik wał",
    "windows-1250": "díl šroub ložisko těsnění kryt hřídel tlak měření zkouška číslo příruba žlutý",
    "windows-1252": "Größe Länge Höhe 5µm °C m² Ø8 ½ ±0.1 Gehäuse Übermaß Müller weiß",  # codespell:ignore he
    "euc-kr": "부품 질량 비고 볼트 너트 강철 아연도금 압력 온도 시험 번호 하우징 베어링 측정값",
    "big5": "零件 質量 備註 螺栓 螺帽 鋼 鍍鋅 壓力 溫度 測試 編號 外殼 軸承 數值 台北",
    "gb18030": "零件 质量 备注 螺栓 螺母 钢 镀锌 压力 温度 测试 编号 外壳 轴承 数值 北京",
    "euc-jp": "部品 質量 備考 ボルト ナット 鋼 亜鉛メッキ 圧力 温度 試験 ハウジング 測定値 ねじ",
    "shift-jis": "部品 質量 備考 ボルト ナット 鋼 亜鉛メッキ 圧力 温度 試験 ハウジング 測定値 ねじ",
    "windows-1253": "εξάρτημα μάζα βίδα παξιμάδι πίεση θερμοκρασία χρόνος αριθμός δοκιμή",
    "windows-1254": "parça kütle somun ağırlık şişe basınç sıcaklık ölçüm değer numara",
}
WESTERN = {
    "fr": "pièce désignation écrou vis acier trempé pression élément numéro référence à côté forêt",
    "es": "año tamaño presión válvula número descripción señal diámetro conexión pequeño",
    "sv": "längd tryck mätning från över åtgärd kåpa större ändring",
    "pt": "peça fixação válvula pressão medição não número",
}


def table(words: str, seed: int, rows: int = 20) -> str:
    generator, chosen = random.Random(seed), words.split()
    lines = [
        f"{row};{generator.choice(chosen)};{generator.choice(chosen)};{generator.random():.3f}" for row in range(rows)
    ]
    return "\n".join(["id;name;note;value", *lines]) + "\n"


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", WORDS)
def test_a_legacy_encoding_is_guessed_from_its_letters(name: str, seed: int) -> None:
    text = table(WORDS[name], seed)
    found = detect_encoding(text.encode(name.replace("shift-jis", "cp932")), whole=True)
    assert text.encode(name.replace("shift-jis", "cp932")).decode(found.codec) == text
    assert (found.name, found.guessed) == (name, True)


@pytest.mark.parametrize(
    "text",
    [
        *(table(words, 1) for words in WESTERN.values()),
        "temp °C\n1\n", "part,size\nA,5µm\n", "x\nØ 5\n", "name\n½ pipe\n", "Größe\n1\n", "x\n“quoted” – 5 €\n",
    ],
)  # fmt: skip
def test_western_languages_and_single_signs_are_read_as_windows_1252(text: str) -> None:
    assert detect_encoding(text.encode("cp1252"), whole=True).name == "windows-1252"


@pytest.mark.parametrize("other", ["cp1252", "cp1251", "iso8859-2"])
def test_one_valid_utf8_row_makes_a_file_utf8_and_other_rows_are_rejected(other: str) -> None:
    text = {"cp1252": "größe", "cp1251": "болт", "iso8859-2": "śruba"}[other]
    data = b"id,name\n" + "".join(f"{row},{text}\n" for row in range(30)).encode(other) + "99,Ünder\n".encode()
    (chunk,) = read(Csv(), data)
    assert chunk.records.rows() == [("99", "Ünder")]
    assert len(chunk.rejects) == 30
    assert chunk.facts["file.encoding"] == "utf-8"
    assert NOTICE not in chunk.facts


def test_a_row_that_is_valid_utf8_by_coincidence_does_not_decide_the_encoding() -> None:
    row = "61;표;;1\n".encode("euc-kr")
    assert row.decode("utf-8") == "61;ǥ;;1\n"
    assert detect_encoding(table(WORDS["euc-kr"], 1, rows=60).encode("euc-kr") + row, whole=True).name == "euc-kr"


@pytest.mark.parametrize(
    ("text", "name"), [("A,볼트\n", "euc-kr"), ("A,ボルト\n", "euc-jp"), ("A,тест\n", "windows-1251")]
)
def test_one_word_is_enough_for_a_guess(text: str, name: str) -> None:
    assert detect_encoding(text.encode(name), whole=True).name == name


@pytest.mark.parametrize("codec", ["utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be"])
def test_utf16_and_utf32_without_a_mark_are_recognised_by_zero_bytes(codec: str) -> None:
    (chunk,) = read(Csv(), "part,größe\nA,0.10\n".encode(codec))
    assert chunk.records.to_dicts() == [{"part": "A", "größe": "0.10"}]
    assert chunk.facts["file.encoding"] == codec
    assert "file.encoding_guessed" not in chunk.facts


def test_a_guessed_encoding_is_reported_with_the_setting_that_fixes_it() -> None:
    (chunk,) = read(Csv(), "part,größe\nA,1\n".encode("cp1252"))
    assert chunk.facts["file.encoding_guessed"] == "yes"
    assert chunk.facts[NOTICE] == (
        "Its encoding is a guess: windows-1252. If letters are wrong, set encoding: the file is then read again. If it was"
        " archived, also drop it again."
    )
    (declared,) = read(Csv(encoding="windows-1252"), "part,größe\nA,1\n".encode("cp1252"))
    assert declared.facts == {"file.encoding": "windows-1252", "file.delimiter": "comma", "file.header_row": "1"}
