import asyncio
import hashlib
import time
from pathlib import Path

import pytest

from octavo.core.errors import Conflict, DownloadNotFound, InvalidRequest
from octavo.core.hub.types import Access
from tests.core.hub.downloading import bench, wish_of
from tests.fixtures.hub_double import HubDouble
from tests.fixtures.hub_repositories import MODEL, Faults, HubRepository
from tests.fixtures.hub_sources import Bytes, Virtual, random_bytes
from tests.server.support import in_loop

MB = 1_000_000


def sha256(path: Path) -> str:
    """Hash a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    "repo",
    [
        "ok/plain",
        "ok/redirect",
        "bad/cut",
        "bad/norange",
        "bad/wrongrange",
        "bad/range416",
        "bad/gzip",
        "bad/stall",
    ],
)
@in_loop
async def test_d01_faults_end_in_the_published_file(tmp_path: Path, repo: str) -> None:
    with HubDouble() as hub:
        async with bench(tmp_path, hub) as made:
            ended = await made.get(wish_of(hub, repo))
            assert (ended.state, ended.error, ended.is_verified) == ("done", None, True)
            assert sha256(made.target(repo)) == ended.wish.files[0].sha256
            assert made.done == [ended] and not made.parts()
            made.check_progress(ended.id)


@in_loop
async def test_d01_a_wrong_hash_is_told_and_deleted(tmp_path: Path) -> None:
    with HubDouble() as hub:
        async with bench(tmp_path, hub) as made:
            ended = await made.get(wish_of(hub, "bad/hash"))
            assert ended.state == "failed" and ended.error is not None
            assert ended.error.code == "checksum_mismatch" and "checksum mismatch" in ended.error.message
            assert ended.done_bytes == 0
            assert not list(made.models.rglob("*.*"))


@in_loop
async def test_d01_a_wrong_size_is_told(tmp_path: Path) -> None:
    with HubDouble() as hub:
        async with bench(tmp_path, hub) as made:
            ended = await made.get(wish_of(hub, "bad/size"))
            assert ended.error is not None and ended.error.code == "download_failed"
            assert "3,001,017" in ended.error.message and "3,000,017" in ended.error.message
            assert not made.target("bad/size").exists()


@in_loop
async def test_d01_a_changed_file_begins_anew_and_says_so(tmp_path: Path) -> None:
    with HubDouble() as hub:
        async with bench(tmp_path, hub) as made:
            ended = await made.get(wish_of(hub, "bad/etagchange"))
            assert ended.state == "done" and "changed on the Hub" in ended.notes[0]
            source = hub.repositories["bad/etagchange"].files[MODEL]
            assert isinstance(source, Bytes)
            assert sha256(made.target("bad/etagchange")) == source.with_flipped(8, 4088).sha256
            made.check_progress(ended.id, restarts=True)


@in_loop
async def test_d01_pause_resume_and_cancel_in_quick_succession(tmp_path: Path) -> None:
    with HubDouble() as hub:
        async with bench(tmp_path, hub) as made:
            id = (await made.downloads.add(wish_of(hub, "bad/slow"))).id
            await made.until(lambda: made.downloads.find(id).done_bytes > 0)
            for _ in range(5):
                assert (await made.downloads.pause(id)).state == "paused"
                assert (await made.downloads.resume(id)).state == "queued"
            await made.until(lambda: made.downloads.find(id).state == "running")
            had = made.downloads.find(id).done_bytes
            assert had > 0 and made.parts()
            began = time.monotonic()
            assert (await made.downloads.cancel(id)).state == "cancelled"
            await made.until(lambda: not made.parts())
            assert time.monotonic() - began < 2
            assert not list(made.models.iterdir())
            await made.downloads.forget(id)
            with pytest.raises(DownloadNotFound):
                made.downloads.find(id)


@in_loop
async def test_d01_the_list_survives_a_restart_and_goes_on(tmp_path: Path) -> None:
    with HubDouble() as hub:
        slow = hub.repositories["bad/slow"]
        slow.faults.bytes_per_s = MB
        async with bench(tmp_path, hub) as made:
            running = await made.downloads.add(wish_of(hub, "bad/slow"))
            paused = await made.downloads.add(wish_of(hub, "ok/plain"))
            await made.downloads.pause(paused.id)
            await made.until(lambda: made.downloads.find(running.id).done_bytes > MB)
        slow.faults.bytes_per_s = 0
        hub.reset()
        async with bench(tmp_path, hub) as made:
            assert [each.id for each in made.downloads.all()] == [running.id, paused.id]
            assert made.downloads.find(running.id).done_bytes > 0
            assert (await made.ended(running.id)).is_verified
            assert made.downloads.find(paused.id).state == "paused"
            assert hub.sent < 2.5 * MB  # the rest only
            await made.downloads.resume(paused.id)
            assert (await made.ended(paused.id)).state == "done"


@in_loop
async def test_200_mb_arrive_over_a_connection_cut_every_7_mb(tmp_path: Path) -> None:
    with HubDouble() as hub:
        hub.add(HubRepository("big/cut", {MODEL: Virtual(200 * MB)}, Faults(cut_every=7 * MB)))
        async with bench(tmp_path, hub) as made:
            ended = await made.get(wish_of(hub, "big/cut"))
            assert ended.state == "done" and ended.is_verified
            assert sha256(made.target("big/cut")) == ended.wish.files[0].sha256
            made.check_progress(ended.id)
            print(f"{len(hub.gets('big/cut'))} requests, {hub.sent / MB:.1f} MB sent for 200 MB")


@in_loop
async def test_d03_each_refusal_has_words_of_its_own(tmp_path: Path) -> None:
    codes = {
        "err/gated": "gated_repository",
        "err/forbidden": "hub_refused",
        "err/notfound": "repository_not_found",
        "err/nofile": "hub_file_not_found",
        "bad/html": "hub_unreachable",
    }
    with HubDouble() as hub:
        async with bench(tmp_path, hub) as made:
            ended = {repo: await made.get(wish_of(hub, repo)) for repo in codes}
            assert {repo: each.error and each.error.code for repo, each in ended.items()} == codes
            assert all(each.state == "failed" and each.error and each.error.hint for each in ended.values())
            assert len({each.error.message for each in ended.values() if each.error}) == len(codes)
            assert not list(made.models.iterdir())


@in_loop
async def test_d03_a_rate_limit_is_waited_out_with_a_countdown(tmp_path: Path) -> None:
    with HubDouble() as hub:
        hub.repositories["err/rate"].faults.refusals = [(429, "", 2.0)] * 2
        async with bench(tmp_path, hub) as made:
            began = time.monotonic()
            ended = await made.get(wish_of(hub, "err/rate"))
            assert ended.state == "done" and ended.error is None and ended.retry_at is None
            assert time.monotonic() - began >= 4
            waits = [told for told in made.told if told.state == "waiting"]
            assert waits and all(told.error and told.error.code == "hub_rate_limited" for told in waits)
            assert all(told.retry_at and told.retry_at > told.added_at for told in waits)
            assert len(hub.gets("err/rate")) == 3


@in_loop
async def test_d03_trouble_of_the_hub_is_tried_again(tmp_path: Path) -> None:
    with HubDouble() as hub:
        async with bench(tmp_path, hub) as made:
            assert (await made.get(wish_of(hub, "err/500"))).state == "done"
            assert len(hub.gets("err/500")) == 3


@in_loop
async def test_d03_an_unreachable_hub_fails_in_words_after_some_tries(tmp_path: Path) -> None:
    with HubDouble() as hub:
        wish = wish_of(hub, "ok/plain")
        async with bench(tmp_path, "http://127.0.0.1:1") as made:
            ended = await made.get(wish)
            assert ended.state == "failed" and ended.error is not None
            assert ended.error.code == "hub_unreachable" and "127.0.0.1" in ended.error.message


@in_loop
async def test_d06_only_the_hub_sees_the_token(tmp_path: Path) -> None:
    with HubDouble() as hub:
        async with bench(tmp_path, hub, token="hf_secret") as made:
            assert (await made.get(wish_of(hub, "ok/redirect"))).state == "done"
            assert all(asked.authorization == "Bearer hf_secret" for asked in hub.log if not asked.is_cdn)
            assert [asked.authorization for asked in hub.log if asked.is_cdn] == [None]
            kept = [path for path in tmp_path.rglob("*") if path.is_file()]
            assert not [path for path in kept if b"hf_secret" in path.read_bytes()]


@in_loop
async def test_d06_offline_asks_nothing_and_goes_on_later(tmp_path: Path) -> None:
    is_offline = [True]
    with HubDouble() as hub:

        def access() -> Access:
            return Access(endpoint=hub.endpoint, is_offline=is_offline[0])

        async with bench(tmp_path, hub, access=access) as made:
            ended = await made.get(wish_of(hub, "ok/plain"))
            assert ended.state == "paused" and ended.error is not None
            assert ended.error.code == "hub_offline" and not hub.log
            is_offline[0] = False
            await made.downloads.refresh()
            await made.until(lambda: made.downloads.find(ended.id).state == "done")


@in_loop
async def test_d07_hostile_names_are_refused(tmp_path: Path) -> None:
    with HubDouble() as hub:
        async with bench(tmp_path, hub) as made:
            for path in hub.repositories["err/traversal"].files:
                wish = wish_of(hub, "err/traversal", [path])
                if path == "good.gguf":
                    assert (await made.get(wish)).state == "done"
                    continue
                with pytest.raises(InvalidRequest):
                    await made.downloads.add(wish)
            files = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.gguf")]
            assert files == ["models/err/traversal/good.gguf"]


@in_loop
async def test_d10_files_of_one_name_stay_apart_and_the_set_comes_at_once(tmp_path: Path) -> None:
    with HubDouble() as hub:
        async with bench(tmp_path, hub) as made:
            ended = await made.get(wish_of(hub, "ok/subfolder"))
            assert ended.state == "done" and ended.is_verified
            for file in ended.wish.files:
                assert sha256(made.target("ok/subfolder", file.path)) == file.sha256
            both = ["UD-Q2_K_XL/model-UD-Q2_K_XL.gguf", "mmproj-F16.gguf"]
            await made.get(wish_of(hub, "ok/subfolder", both))
            assert made.target("ok/subfolder", "UD-Q2_K_XL/mmproj-F16.gguf").is_file()


@in_loop
async def test_a_set_gets_its_names_together(tmp_path: Path) -> None:
    with HubDouble() as hub:
        sources = {f"m-0000{n}-of-00002.gguf": Bytes(random_bytes(2 * MB, n)) for n in (1, 2)}
        hub.add(HubRepository("ok/split", dict(sources), Faults(bytes_per_s=4 * MB)))
        async with bench(tmp_path, hub) as made:
            id = (await made.downloads.add(wish_of(hub, "ok/split"))).id
            seen = set()
            while made.downloads.find(id).state != "done":
                seen.add(len(list(made.models.rglob("*.gguf"))))
                await asyncio.sleep(0.01)
            assert seen <= {0, 2} and 0 in seen


@in_loop
async def test_what_is_there_is_kept_and_not_fetched(tmp_path: Path) -> None:
    with HubDouble() as hub:
        async with bench(tmp_path, hub) as made:
            wish = wish_of(hub, "ok/plain")
            await made.get(wish)
            sent = hub.sent
            assert (await made.get(wish)).state == "done" and hub.sent == sent
            made.target("ok/plain").write_bytes(b"another")
            ended = await made.get(wish)
            assert ended.error is not None and ended.error.code == "target_exists"
            assert made.target("ok/plain").read_bytes() == b"another"


@in_loop
async def test_the_same_wish_is_one_download_and_a_running_one_is_not_forgotten(tmp_path: Path) -> None:
    with HubDouble() as hub:
        async with bench(tmp_path, hub) as made:
            wish = wish_of(hub, "bad/slow")
            first, second = await made.downloads.add(wish), await made.downloads.add(wish)
            assert first.id == second.id and len(made.downloads.all()) == 1
            with pytest.raises(Conflict):
                await made.downloads.forget(first.id)
            await made.downloads.cancel(first.id)


@in_loop
async def test_the_limit_holds_for_all_together_and_few_run_at_once(tmp_path: Path) -> None:
    with HubDouble() as hub:
        async with bench(tmp_path, hub, bytes_per_s=3 * MB, at_once=2) as made:
            repos = ["ok/plain", "bad/gzip", "ok/redirect"]
            began = time.monotonic()
            ids = [(await made.downloads.add(wish_of(hub, repo))).id for repo in repos]
            await made.until(lambda: made.downloads.find(ids[0]).state == "running")
            assert made.downloads.find(ids[2]).state == "queued"
            for id in ids:
                assert (await made.ended(id)).state == "done"
            rate = 3 * 3 / (time.monotonic() - began)
            print(f"{rate:.2f} MB/s with a limit of 3")
            assert rate < 3.3


@in_loop
async def test_progress_is_told_at_most_four_times_a_second_with_speed_and_time(tmp_path: Path) -> None:
    with HubDouble() as hub:
        hub.repositories["bad/slow"].faults.bytes_per_s = MB
        async with bench(tmp_path, hub) as made:
            ended = await made.get(wish_of(hub, "bad/slow"))
            running = [told for told in made.told if told.state == "running"]
            assert ended.state == "done" and 4 < len(running) <= 4 * 4
            late = [told for told in running if told.bytes_per_s]
            assert late and 0.5 * MB < late[-1].bytes_per_s < 2 * MB
            assert late[-1].seconds_left is not None and late[-1].seconds_left < 2


@in_loop
async def test_a_page_without_its_type_never_becomes_a_model(tmp_path: Path) -> None:
    with HubDouble() as hub:
        page = Bytes(b"<!DOCTYPE html>" * 100)
        hub.add(HubRepository("bad/page", {MODEL: page}, Faults(hides_sha256=True)))
        async with bench(tmp_path, hub) as made:
            ended = await made.get(wish_of(hub, "bad/page"))
            assert ended.error is not None and "no GGUF file" in ended.error.message
            assert not list(made.models.rglob("*.*"))
