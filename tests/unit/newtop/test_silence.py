from antiphon.protocols.newtop.silence import Silence


def test_a_duty_falls_due_after_the_timeout() -> None:
    silence = Silence(50)
    silence.owe(4, now=10)
    assert (silence.deadline, silence.due(59), silence.due(60)) == (60, False, True)


def test_speaking_pays_duties_up_to_its_number_only() -> None:
    silence = Silence(50)
    silence.owe(4, now=10)
    silence.owe(7, now=30)
    deadlines = []
    for block in (3, 5, 7):
        silence.spoke(block)
        deadlines.append(silence.deadline)
    assert deadlines == [60, 80, None]
    assert not silence.due(1_000)


def test_eager_answers_are_due_at_once() -> None:
    silence = Silence(0)
    assert not silence.due(0)
    silence.owe(1, now=10)
    assert silence.due(10)
