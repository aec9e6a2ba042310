"""Who gets the pages of the review: one browser, and nothing else on this machine or in that browser."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import psutil
import pytest

from albert_tools import SyncToolService
from tests.surfaces.web.conftest import Review

NOTE = '''def note(text: str) -> str:
    """Keep a text.

    Args:
        text: The text.
    """
    return text
'''
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)


@pytest.fixture(scope="module")
def version(review: Review) -> str:
    return review.define(NOTE)


@pytest.fixture
def anybody(review: Review) -> Iterator[httpx.Client]:
    """A client without our cookie."""
    with httpx.Client(timeout=30, base_url=review.root, verify=False) as client:
        yield client


@pytest.fixture
def unopened(tmp_path: Path) -> Iterator[Review]:
    review = Review(tmp_path.resolve())
    review.start()
    yield review
    review.stop()


def test_the_link_works_once_and_in_one_browser(unopened: Review, anybody: httpx.Client) -> None:
    review = unopened
    assert anybody.get(review.link.replace("token=", "token=x")).status_code == 403
    opened = httpx.get(review.link)
    assert opened.status_code == 200
    value, *flags = opened.headers["set-cookie"].split("; ")
    folder = review.root.removeprefix(review.origin).rstrip("/")
    assert sorted(flags) == ["HttpOnly", f"Path={folder}", "SameSite=strict"]
    again = anybody.get(review.link)
    assert again.status_code == 403
    assert "set-cookie" not in again.headers
    # The browser that has the cookie can follow the link again.
    assert anybody.get(review.link, headers={"cookie": value}).headers["location"] == f"{folder}/"


@pytest.mark.parametrize("cookie", ["", "albert_review=x", 'albert_review="', "other=1; albert_review"])
def test_without_the_cookie_a_page_says_nothing(
    review: Review, version: str, anybody: httpx.Client, cookie: str
) -> None:
    for path in ("", "live/queue", "fleet", "live/fleet", "tools", "tools/note", "runs/x", "questions/x"):
        answer = anybody.get(review.root + path, headers={"cookie": cookie})
        assert answer.status_code == 403
        assert "This review is not open in this browser" in answer.text
        assert version not in answer.text
        assert "form_token" not in answer.text
    assert anybody.post("tools/note", headers={"cookie": cookie, "origin": review.origin}).status_code == 403


def test_outside_of_the_secret_folder_there_is_nothing(review: Review, anybody: httpx.Client) -> None:
    folder = review.root.removeprefix(review.origin).strip("/")
    for path in ("/", "/tools", "/static/review.css", "/open"):
        answer = anybody.get(review.origin + path)
        assert answer.status_code == 404
        assert folder not in answer.text


@pytest.mark.parametrize("host", ["attacker.example", "localhost:{port}", "127.0.0.1", "127.0.0.1:1", ""])
def test_another_host_reaches_nothing(review: Review, client: httpx.Client, host: str) -> None:
    port = review.origin.rpartition(":")[2]
    assert client.get("", headers={"host": host.format(port=port)}).status_code in (400, 421)


@pytest.mark.parametrize("origin", ["http://attacker.example", "null", "http://127.0.0.1:1", "http://localhost"])
def test_another_origin_reaches_nothing(client: httpx.Client, version: str, origin: str) -> None:
    assert client.get("tools", headers={"origin": origin}).status_code == 403
    assert client.post("tools/note", headers={"origin": origin}).status_code == 403


def test_a_form_needs_an_origin_and_the_token_of_our_pages(review: Review, client: httpx.Client, version: str) -> None:
    fields = {"verdict": "approve", "version": version}
    del client.headers["origin"]
    page = client.get("tools/note")
    assert page.status_code == 200
    ours = re.findall('name="form_token" value="([^"]+)"', page.text)[0]
    answer = client.post("tools/note", data=fields | {"form_token": ours})
    assert (answer.status_code, answer.text) == (403, "the request comes from another page")
    client.headers["origin"] = review.origin
    for token in ({}, {"form_token": ""}, {"form_token": "x"}, {"form_token": "é"}):
        answer = client.post("tools/note", data=fields | token)
        assert answer.status_code == 403
        assert "the form is not from a page of this review" in answer.text
    assert review.state("note", version) == "pending"


def test_a_large_request_is_refused_before_it_is_read(client: httpx.Client, version: str) -> None:
    assert client.post("tools/note", content=b"x" * 65_537).status_code == 413
    assert client.post("tools/note", content=iter([b"x"])).status_code == 413
    assert client.post("tools/note", content=b"&".join([b"a=1"] * 100)).status_code == 403


def test_every_answer_has_the_security_headers(
    review: Review, version: str, client: httpx.Client, anybody: httpx.Client
) -> None:
    answers = [
        client.get(path) for path in ("", "live/queue", "tools", "tools/note", "tools/missing", "static/review.js")
    ]
    answers += [anybody.get(""), anybody.get(review.origin), anybody.get("", headers={"host": "x"})]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 200, 404, 200, 403, 404, 421]
    for answer in answers:
        assert answer.headers["content-security-policy"] == POLICY
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert "server" not in answer.headers


def test_it_listens_on_the_loopback_address_only(review: Review) -> None:
    assert review.process is not None
    listening = [c.laddr.ip for c in psutil.Process(review.process.pid).net_connections() if c.status == "LISTEN"]
    assert listening == ["127.0.0.1"]


def test_a_session_can_not_open_it(review: Review) -> None:
    done = review.albert("review", "--web", env={"ALBERT_SESSION": "alb_x"})
    assert (done.code, done.out) == (3, "")


def test_it_takes_no_decision(review: Review) -> None:
    for words in (["note"], ["--revoke", "why"], ["--approve"]):
        done = review.albert("review", "--web", *words)
        assert (done.code, done.out) == (2, "")
        assert "--web takes no NAME, decision or --json" in done.err


@pytest.mark.parametrize("other", ["a@b=1", "(x)=2", "é=1", 'q="', "albert_review=x", 'albert_review="'])
def test_a_cookie_of_another_server_locks_nobody_out(review: Review, anybody: httpx.Client, other: str) -> None:
    for cookie in (f"{other}; albert_review={review.cookie}", f"albert_review={review.cookie}; {other}"):
        assert anybody.get("", headers={"cookie": cookie.encode()}).status_code == 200  # type: ignore[dict-item]


def test_an_approval_does_not_replace_a_refusal_that_its_page_has_not_shown(
    review: Review, client: httpx.Client, version: str
) -> None:
    page = client.get("tools/note").text
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page))
    assert client.post("tools/note", data={**fields, "verdict": "reject", "why": "no"}).status_code == 303
    answer = client.post("tools/note", data={**fields, "verdict": "approve"})
    assert "is revoked, not pending" in answer.text
    assert review.state("note", version) == "revoked"


def test_every_question_is_on_a_page(review: Review, client: httpx.Client) -> None:
    opened = review.albert("session", "new", "--json").document()
    with SyncToolService.open(home=review.albert.home, workspace=review.albert.project) as service:
        for n in range(51):
            service.invoke("write_file", {"path": f"{n}", "content": ""}, session=opened["token"])
        asked = {a.id for a in service.within(lambda s: s.approvals.all(("open",)))}
    texts = [client.get(f"?page={n}").text for n in (1, 2)]
    pages = [set(re.findall(r"/questions/([0-9a-f]{12})", text)) for text in texts]
    assert texts[0].count('class="card"') == 50
    assert pages[0] | pages[1] == asked
    assert "?page=2" in client.get("").text
    # A number that is too high is the last page.
    assert [client.get(f"?page={n}").status_code for n in (9, "x", "²")] == [200] * 3
    review.albert("session", "revoke", opened["session"]["session"])
    assert not re.search(r"/questions/[0-9a-f]{12}", client.get("").text)


def test_no_session_hides_what_others_wait_for(review: Review, client: httpx.Client) -> None:
    sessions = [review.albert("session", "new", "--client", name, "--json").document() for name in ("<b>", "calm")]
    source = 'def calm(path: str) -> str:\n    """Read."""\n    return tools.read_file(path=path)\n'
    version = review.define(source, session=sessions[1]["token"])
    with SyncToolService.open(home=review.albert.home, workspace=review.albert.project) as service:
        for n in range(60):
            service.invoke("write_file", {"path": f"q{n}", "content": ""}, session=sessions[0]["token"])
        service.invoke("write_file", {"path": "late", "content": ""}, session=sessions[1]["token"])
    first = client.get("").text
    # Its question and its version are together, on the first page.
    ids = [each["session"]["session"] for each in sessions]
    calm = first[first.index(f'<span class="name">{ids[1]}</span> of calm') :].partition("</section>")[0]
    assert [calm.count("/questions/"), calm.count(f"/tools/calm?version={version}")] == [1, 1]
    assert calm.index("/questions/") < calm.index("/tools/calm")
    assert f'{ids[0]}</span> of &lt;b&gt; <span class="count">60</span>' in first
    assert "Page 1 of 2" in first
    for each in ids:
        review.albert("session", "revoke", each)
    # The questions of a session end with it, and its versions remain.
    assert f"{ids[1]}</span> of calm (ended)" in client.get("").text
    review.albert("review", "calm", "--reject", "no")


def test_requests_that_are_never_complete_lock_nobody_out(review: Review, client: httpx.Client) -> None:
    host, _, port = review.origin.removeprefix("http://").partition(":")
    head = f"GET {review.root.removeprefix(review.origin)} HTTP/1.1\r\nHost: {host}:{port}\r\n"
    sockets = [socket.create_connection((host, int(port))) for _ in range(700)]
    try:
        for n, each in enumerate(sockets):
            with suppress(OSError):
                # Half of them are complete, and have a cookie that is not ours.
                each.sendall(f"{head}Cookie: albert_review=x\r\n{'' if n % 2 else chr(13) + chr(10)}".encode())
        assert [client.get("").status_code for _ in range(3)] == [200] * 3
    finally:
        for each in sockets:
            each.close()
