"""Warnings about one subject are logged once in a while, and none is forgotten in the count."""

import logging

import pytest

from antiphon.limited_log import LimitedLog


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_a_subject_is_logged_once_in_each_pause_with_the_number_left_out(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    limited = LimitedLog("antiphon.test", pause_s=10, clock=clock)
    with caplog.at_level(logging.WARNING, "antiphon.test"):
        logged = [limited.warn("p1", "%s is slow", "p1") for _ in range(5)]
        clock.now_s += 10
        limited.warn("p1", "%s is slow", "p1")
        clock.now_s += 10
        limited.warn("p1", "%s is slow", "p1")
    assert logged == [True, False, False, False, False]
    assert caplog.messages == ["p1 is slow", "p1 is slow (4 more since the last such line)", "p1 is slow"]


def test_subjects_do_not_silence_each_other(caplog: pytest.LogCaptureFixture) -> None:
    limited = LimitedLog("antiphon.test", clock=Clock())
    assert limited.warn("p1", "x")
    assert limited.warn("p2", "y")
    assert caplog.messages == ["x", "y"]


def test_a_text_without_arguments_is_not_formatted(caplog: pytest.LogCaptureFixture) -> None:
    limited = LimitedLog("antiphon.test", pause_s=0, clock=Clock())
    limited.warn("disk", "100% full")
    limited.warn("disk", "100% full")
    assert caplog.messages == ["100% full"] * 2


def test_the_number_of_remembered_subjects_is_bounded() -> None:
    clock = Clock()
    limited = LimitedLog("antiphon.test", clock=clock)
    for number in range(10_000):
        clock.now_s += 0.001
        limited.warn(f"stranger {number}", "x")
    assert len(limited._subjects) == 256
    assert limited.warn("stranger 0", "x"), "it was forgotten, so it is news again"
    assert not limited.warn("stranger 9999", "x")
