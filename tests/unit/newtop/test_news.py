"""When members announce completed numbers without a message to carry them."""

from antiphon.protocols.newtop.frames import Flow
from antiphon.protocols.newtop.news import News
from antiphon.protocols.newtop.settings import NewtopSettings


def test_half_a_window_of_bytes_does_not_wait() -> None:
    news = News(NewtopSettings(flow_control=3, window=64, window_bytes=1000), 0, by_block=False)
    news.delivered(1, 300)
    news.delivered(2, 300)
    assert not news.presses(1)
    assert news.presses(2)


def test_unannounced_bytes_keep_counting_until_they_are_announced_as_complete() -> None:
    news = News(NewtopSettings(flow_control=3, window=64, window_bytes=1000), 0, by_block=False)
    news.delivered(1, 300)
    news.delivered(2, 300)
    news.spoken(0, Flow(2, 0, 0, 0), now=1)  # a null that left before the application had taken them
    assert news.presses(2)
    news.spoken(0, Flow(2, 1, 0, 0), now=2)
    assert not news.presses(2)
    news.delivered(3, 300)
    assert news.presses(3)
