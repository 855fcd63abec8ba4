"""Files of OpenAI's API by its own client: kept as they came, of one project, refused in its words."""

from __future__ import annotations

import httpx
import openai
import pytest
from openai_world import CHAT, OpenAIWorld, lines


def test_a_file_comes_back_byte_for_byte_and_is_gone_when_deleted(world: OpenAIWorld, ours: openai.OpenAI) -> None:
    made = ours.files.create(file=("chat.jsonl", lines(CHAT)), purpose="fine-tune")
    assert (made.object, made.filename, made.purpose, made.status) == ("file", "chat.jsonl", "fine-tune", "processed")
    assert made.bytes == len(lines(CHAT))
    assert ours.files.retrieve(made.id) == made
    assert ours.files.content(made.id).read() == lines(CHAT)
    assert ours.files.delete(made.id).deleted
    for lost in (ours.files.retrieve, ours.files.content, ours.files.delete):
        with pytest.raises(openai.NotFoundError, match=made.id):
            lost(made.id)


def test_files_are_listed_newest_first_and_by_pages(world: OpenAIWorld, ours: openai.OpenAI) -> None:
    ids = [world.upload(ours, CHAT, f"{n}.jsonl") for n in range(3)]
    first = ours.files.list(limit=2)
    assert [file.id for file in first.data] == [ids[2], ids[1]]
    assert first.has_more
    assert [file.id for file in ours.files.list(limit=2, after=ids[1])] == [ids[0]]
    assert [file.id for file in ours.files.list(limit=1)] == ids[::-1], "the client goes through all pages"
    assert [file.id for file in ours.files.list(order="asc")] == ids
    assert ours.files.list(purpose="fine-tune-results").data == []
    with pytest.raises(openai.BadRequestError) as wrong:
        ours.files.list(after="file-nothing")
    assert (wrong.value.code, wrong.value.param) == ("bad_cursor", "after")


@pytest.mark.parametrize(
    ("content", "purpose", "code", "param"),
    [
        (b"", "fine-tune", "empty_file", None),
        (b"{not json}\n", "fine-tune", "broken_json", None),
        (b'{"a": 1}\n', "assistants", "unsupported_parameter", "purpose"),
    ],
)
def test_a_file_that_no_job_could_read_is_refused_at_once(
    ours: openai.OpenAI, content: bytes, purpose: str, code: str, param: str | None
) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        ours.files.create(file=("x.jsonl", content), purpose=purpose)  # type: ignore[arg-type]
    body = refused.value.body
    assert isinstance(body, dict)
    assert (body["code"], body["type"]) == (code, "invalid_request_error")
    if param:
        assert body["param"] == param
    assert ours.files.list().data == []


def test_a_field_of_uploads_that_nothing_follows_is_refused_by_name(ours: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="expires_after"):
        ours.files.create(
            file=("x.jsonl", lines(CHAT)),
            purpose="fine-tune",
            expires_after={"anchor": "created_at", "seconds": 3600},
        )


def test_scopes_hold_and_wrong_tokens_are_authentication_errors(world: OpenAIWorld, ours: openai.OpenAI) -> None:
    made = world.upload(ours, CHAT)
    with world.client(world.token_of("read")) as reader:
        assert reader.files.retrieve(made).id == made
        with pytest.raises(openai.PermissionDeniedError) as denied:
            reader.files.delete(made)
        assert denied.value.code == "missing_scope"
        with pytest.raises(openai.PermissionDeniedError):
            world.upload(reader, CHAT)
    with world.client("wrong") as stranger, pytest.raises(openai.AuthenticationError) as unknown:
        stranger.files.list()
    assert unknown.value.code == "invalid_token"


def test_the_project_is_that_of_the_path_the_header_the_token_or_default(
    world: OpenAIWorld, ours: openai.OpenAI
) -> None:
    headers = {"Authorization": f"Bearer {world.token}"}
    httpx.post(f"{world.url}/api/v1/projects", headers=headers, json={"name": "team"}).raise_for_status()
    made = world.upload(ours, CHAT)
    with world.client(path="/p/team/v1") as by_path, world.client(project="team") as by_header:
        theirs = world.upload(by_path, CHAT)
        assert [file.id for file in by_header.files.list()] == [theirs]
        with pytest.raises(openai.NotFoundError):
            by_header.files.retrieve(made)
    with world.client(world.token_of("read")) as of_token:
        assert [file.id for file in of_token.files.list()] == [made]
    with world.client(world.token_of("read"), project="team") as elsewhere, pytest.raises(openai.NotFoundError):
        elsewhere.files.list()


def test_what_is_not_there_answers_in_openais_form_and_never_with_a_page(world: OpenAIWorld) -> None:
    for path in ("/v1/embeddings", "/p/default/v1/nothing"):
        answer = httpx.get(world.url + path, headers={"Authorization": f"Bearer {world.token}"})
        assert answer.status_code == 404
        assert answer.json()["error"]["type"] == "not_found_error"
        assert answer.headers["cache-control"] == "no-store"
    ours = httpx.get(f"{world.url}/api/v1/projects/none/runs", headers={"Authorization": f"Bearer {world.token}"})
    assert ours.json()["code"] == "not_found", "our own API keeps its form"


def test_an_upload_that_is_repeated_with_its_key_is_one_file(world: OpenAIWorld, ours: openai.OpenAI) -> None:
    options = {"purpose": "fine-tune", "extra_headers": {"Idempotency-Key": "one"}}
    first, again = (ours.files.create(file=("x.jsonl", lines(CHAT)), **options) for _ in range(2))  # type: ignore[call-overload]
    assert first.id == again.id
    headers = {"Authorization": f"Bearer {world.token}"}
    httpx.post(f"{world.url}/api/v1/projects", headers=headers, json={"name": "team"}).raise_for_status()
    with world.client(project="team") as elsewhere:
        assert elsewhere.files.create(file=("x.jsonl", lines(CHAT)), **options).id != first.id  # type: ignore[call-overload]
    with pytest.raises(openai.ConflictError) as other:
        ours.files.create(file=("x.jsonl", lines(CHAT[:3])), **options)  # type: ignore[call-overload]
    assert other.value.code == "idempotency_key_reused"
