from __future__ import annotations

from tdbg_lab.records import Finding, Severity
from tdbg_lab.rules.episode import MOST, Episodes, News


def answer(step: int, *, tensor: str = "a", severity: Severity = Severity.WARNING) -> Finding:
    return Finding("some_rule", severity, step, step, f"at {step}", tensor=tensor)


def test_same_trouble_is_one_finding_that_grows() -> None:
    episodes = Episodes()
    news = [episodes.take(step, answer(step)) for step in (3, 4, 5)]
    assert [change.news for change in news if change] == [News.NEW, News.LONGER, News.LONGER]
    (finding,) = episodes.findings
    assert (finding.step_first, finding.step_last) == (3, 5)
    assert finding.message == "at 5"
    assert finding.time_ns > 0


def test_trouble_that_pauses_shortly_goes_on() -> None:
    episodes = Episodes(calm=3)
    for step, found in enumerate([1, 0, 0, 1, 0, 0, 1]):
        episodes.take(step, answer(step) if found else None)
    assert len(episodes.findings) == 1


def test_trouble_after_a_calm_is_another_finding() -> None:
    episodes = Episodes(calm=3)
    for step, found in enumerate([1, 0, 0, 0, 1]):
        episodes.take(step, answer(step) if found else None)
    first, second = episodes.findings
    assert first.id != second.id
    assert (first.step_last, second.step_first) == (0, 4)


def test_trouble_that_comes_and_goes_for_long_is_a_number_of_findings() -> None:
    episodes = Episodes(calm=1)
    for step in range(0, 4 * MOST, 2):
        episodes.take(step, answer(step))
        episodes.take(step + 1, None)
    assert len(episodes.findings) == MOST
    assert (episodes.findings[-1].step_first, episodes.findings[-1].step_last) == (2 * MOST - 2, 4 * MOST - 2)
    change = episodes.take(4 * MOST, answer(4 * MOST, severity=Severity.CRITICAL))
    assert change is not None
    assert change.news is News.WORSE


def test_worse_trouble_is_news_and_never_gets_better_again() -> None:
    episodes = Episodes()
    episodes.take(1, answer(1))
    change = episodes.take(2, answer(2, severity=Severity.CRITICAL))
    assert change is not None
    assert change.news is News.WORSE
    episodes.take(3, answer(3))
    assert episodes.findings[0].severity is Severity.CRITICAL


def test_finding_stays_with_the_tensor_named_first() -> None:
    episodes = Episodes()
    episodes.take(1, answer(1, tensor="layer3"))
    episodes.take(2, answer(2, tensor="layer1", severity=Severity.CRITICAL))
    (finding,) = episodes.findings
    assert (finding.tensor, finding.message, finding.step_last) == ("layer3", "at 1", 2)


def test_trouble_that_follows_a_mere_notice_is_named() -> None:
    episodes = Episodes()
    episodes.take(1, answer(1, tensor="layer3", severity=Severity.NOTICE))
    episodes.take(2, answer(2, tensor="layer1", severity=Severity.WARNING))
    (finding,) = episodes.findings
    assert (finding.tensor, finding.message, finding.step_first) == ("layer1", "at 2", 1)


def test_checking_again_from_anywhere_tells_nothing_new() -> None:
    answers = {step: answer(step) for step in (*range(3, 9), *range(20, 24))}
    first = Episodes()
    for step in range(30):
        first.take(step, answers.get(step))
    for begin in range(30):
        again = Episodes(first.findings)
        assert [again.take(step, answers.get(step)) for step in range(begin, 30)] == [None] * (30 - begin)
        assert again.findings == first.findings


def test_identity_is_the_same_in_every_process() -> None:
    one, other = Episodes(), Episodes()
    one.take(7, answer(7))
    other.take(7, answer(7))
    assert one.findings[0].id == other.findings[0].id
    assert one.findings[0].id.startswith("some_rule-")
