"""Who may call, from where, and what each scope sees."""

import hmac
import time
from typing import Any

import pytest

from console.api import job_routes
from console.api.access import RIGHTS, TOKENS_KEY, Access, Permission, Scope
from core.jobs import State
from infra.clocks import HandClock, SystemClock
from infra.local.folder import FolderStore
from tests.support.console import ApiRig, api_rig

CALLS = {
    Permission.READ: [("GET", "/jobs"), ("GET", "/overview"), ("GET", "/review"), ("GET", "/metrics")],
    Permission.SUBMIT: [("POST", "/jobs"), ("POST", "/uploads")],
    Permission.DECIDE: [("POST", "/jobs/x/decide")],
    Permission.ACT: [("POST", "/jobs/x/retry"), ("GET", "/actions"), ("DELETE", "/jobs/x")],
}


class TestTokens:
    def test_only_a_hash_is_kept(self, rig: ApiRig):
        token = rig.token("reader")
        kept = rig.stack.store.read(TOKENS_KEY, limit=10_000).decode()
        assert token.split("_")[1] in kept
        assert token.split("_", 2)[2] not in kept

    @pytest.mark.parametrize("spoil", [lambda t: t[:-1], lambda t: t + "x", lambda t: t.upper(), lambda _: "ade_x_y"])
    def test_a_wrong_token_is_refused_even_on_this_machine(self, rig: ApiRig, spoil):
        wrong = {"Authorization": f"Bearer {spoil(rig.token('operator'))}"}
        answer = rig.client.get("/jobs", headers=wrong)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")

    def test_a_revoked_token_is_refused(self, rig: ApiRig):
        token = rig.token("reader")
        assert rig.from_afar(token).get("/jobs").status_code == 200
        rig.context.access.revoke(token.split("_")[1])
        assert rig.from_afar(token).get("/jobs").status_code == 401

    def test_a_token_that_is_revoked_while_a_body_comes_stores_nothing(self, rig: ApiRig, monkeypatch):
        token = rig.token("sender", "acme")
        read = job_routes.read_form

        async def slow(*words: Any, **named: Any) -> Any:
            parts = await read(*words, **named)
            rig.context.access.revoke(token.split("_")[1])
            return parts

        monkeypatch.setattr(job_routes, "read_form", slow)
        assert rig.submit(rig.from_afar(token)).status_code == 401
        assert list(rig.stack.store.keys("inbox/")) == []

    def test_a_token_expires(self, tmp_path):
        clock = HandClock()
        access = Access(FolderStore(tmp_path), clock)
        _, token = access.new("a", Scope.READER, tenant=None, days=1)
        assert access.holder(token) is not None
        clock.move(86401)
        assert access.holder(token) is None

    def test_no_answer_tells_what_is_wrong_with_a_token(self, rig: ApiRig):
        """Unknown, revoked, expired, or known with another secret: the same words, so nobody learns which ids exist."""
        known, revoked, expired = rig.token("reader"), rig.token("reader"), ""
        rig.context.access.revoke(revoked.split("_")[1])
        _, expired = rig.context.access.new("a", Scope.READER, tenant=None, days=-1)
        wrong = [revoked, expired, known[:-1], known[:-8] + "x" * 8, f"ade_0123456789_{known.split('_', 2)[2]}", "x"]
        answers = {(a.status_code, a.text) for a in (rig.from_afar(token).get("/jobs") for token in wrong)}
        assert [status for status, _ in answers] == [401]

    def test_every_token_is_compared_by_a_digest_in_constant_time(self, tmp_path, monkeypatch):
        access = Access(FolderStore(tmp_path), SystemClock())
        grant, token = access.new("a", Scope.READER, tenant=None)
        compared = []
        compare = hmac.compare_digest
        monkeypatch.setattr(hmac, "compare_digest", lambda a, b: compared.append((len(a), len(b))) or compare(a, b))
        tokens = ["", "ade", "ade_x_y", token[:-1], token, f"ade_{grant.id}_\ud800", "x" * 10_000]
        assert [access.holder(t) is not None for t in tokens] == [t == token for t in tokens]
        assert compared == [(64, 64)] * len(tokens)

    def test_a_job_of_another_tenant_is_answered_as_one_that_never_was(self, rig: ApiRig):
        job_id = rig.job("a1").job_id
        other = rig.from_afar(rig.token("sender", tenant="globex"))
        for path in ("", "/artifact", "/output", "/logs", "/files", "/result.zip"):
            theirs, none = other.get(f"/jobs/{job_id}{path}"), other.get(f"/jobs/{job_id[:-1]}0{path}")
            assert theirs.status_code == none.status_code == 404
            assert theirs.text.replace(job_id, "") == none.text.replace(f"{job_id[:-1]}0", "")

    def test_two_who_add_at_once_both_get_their_token(self, tmp_path):
        store = FolderStore(tmp_path)
        one, other = Access(store, SystemClock()), Access(store, SystemClock())
        put = store.put

        def late(key, body, **more):
            store.put = put
            other.new("second", Scope.READER, tenant=None)
            return put(key, body, **more)

        store.put = late
        one.new("first", Scope.READER, tenant=None)
        assert {grant.name for grant in one.grants()} == {"first", "second"}

    def test_another_process_makes_a_token_that_is_known_here(self, rig: ApiRig):
        rig.from_afar("ade_x_y").get("/jobs")
        _, token = Access(rig.stack.store, rig.stack.clock).new("late", Scope.READER, tenant=None)
        until = time.monotonic() + 60
        while rig.from_afar(token).get("/jobs").status_code != 200:
            assert time.monotonic() < until


class TestFromAfar:
    @pytest.mark.parametrize("path", ["/", "/jobs", "/openapi.json", "/metrics", "/ready", "/session", "/jobs/x"])
    def test_nothing_without_a_token(self, rig: ApiRig, path: str):
        assert rig.from_afar().get(path).status_code == 401

    def test_health_says_that_it_lives(self, rig: ApiRig):
        assert rig.from_afar().get("/health").json() == {"status": "ok"}

    @pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "Via", "X-Real-IP"])
    def test_a_proxy_on_this_machine_makes_nobody_local(self, rig: ApiRig, header: str):
        assert rig.client.get("/jobs", headers={header: "203.0.113.9"}).status_code == 401

    def test_this_machine_can_be_asked_for_tokens_too(self, tmp_path):
        with api_rig(tmp_path, console_tokenless=False) as rig:
            assert rig.client.get("/jobs").status_code == 401

    @pytest.mark.parametrize("proto", ["https", "http"])
    def test_a_session_behind_tls_is_never_sent_without_it(self, rig: ApiRig, proto: str):
        """No proxy has to be named for it: an ingress says by itself how the browser came."""
        token = rig.token("reader")
        answer = rig.from_afar().post("/session", json={"token": token}, headers={"X-Forwarded-Proto": proto})
        assert ("secure" in answer.headers["set-cookie"].lower()) == (proto == "https")

    def test_a_trusted_proxy_names_people(self, tmp_path):
        with api_rig(tmp_path, console_proxies="192.0.2.0/24") as rig:
            rig.context.access.new("ann", Scope.READER, tenant="acme", user="ann@example.org")
            named = {"X-Auth-Request-Email": "ann@example.org"}
            assert rig.from_afar(**named).get("/session").json()["tenant"] == "acme"
            assert rig.from_afar(**{"X-Auth-Request-Email": "eve@example.org"}).get("/session").status_code == 401
            assert rig.from_afar().get("/session").status_code == 401

    def test_another_proxy_names_nobody(self, rig: ApiRig):
        rig.context.access.new("ann", Scope.READER, tenant="acme", user="ann@example.org")
        assert rig.from_afar(**{"X-Auth-Request-Email": "ann@example.org"}).get("/session").status_code == 401

    def test_a_token_has_a_rate(self, tmp_path):
        with api_rig(tmp_path, console_rate=1) as rig:
            client = rig.from_afar(rig.token("reader"))
            rig.stop_the_clock()
            answers = [client.get("/session") for _ in range(4)]
            assert [a.status_code for a in answers][-1] == 429
            assert int(answers[-1].headers["retry-after"]) >= 1

    def test_guessing_slows_down(self, rig: ApiRig):
        rig.stop_the_clock()
        codes = [rig.from_afar(f"ade_x_{n}").get("/session").status_code for n in range(60)]
        assert codes[0] == 401
        assert codes[-1] == 429
        assert rig.client.get("/session").status_code == 200


class TestWhereRulesMayUseTheNetwork:
    """A rule calls from this machine, so this machine's addresses prove nothing."""

    def test_this_machine_needs_a_token(self, tmp_path):
        with api_rig(tmp_path, runtime_network_access=True) as rig:
            assert rig.client.get("/jobs").status_code == 401
            known = {"Authorization": f"Bearer {rig.token('reader')}"}
            assert rig.client.get("/jobs", headers=known).status_code == 200

    @pytest.mark.parametrize(("network", "status"), [(True, 401), (False, 200)])
    def test_a_rule_cannot_pose_as_a_proxy_on_this_machine(self, tmp_path, network: bool, status: int):
        with api_rig(tmp_path, runtime_network_access=network, console_proxies="127.0.0.0/8") as rig:
            rig.context.access.new("ann", Scope.OPERATOR, tenant=None, user="ann@example.org")
            named = {"X-Auth-Request-Email": "ann@example.org"}
            assert rig.client.get("/session", headers=named).status_code == status

    def test_a_proxy_on_another_machine_still_names_people(self, tmp_path):
        with api_rig(tmp_path, runtime_network_access=True, console_proxies="192.0.2.0/24") as rig:
            rig.context.access.new("ann", Scope.READER, tenant="acme", user="ann@example.org")
            named = {"X-Auth-Request-Email": "ann@example.org"}
            assert rig.from_afar(**named).get("/session").status_code == 200


class TestBrowsers:
    @pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "evil.example:8020", "[::2]", ""])
    def test_a_name_that_is_not_ours_is_refused(self, rig: ApiRig, host: str):
        assert rig.client.get("/jobs", headers={"Host": host}).status_code == 421

    @pytest.mark.parametrize("host", ["localhost:1", "127.0.0.1", "[::1]:8020", "LOCALHOST"])
    def test_names_of_this_machine_are_ours(self, rig: ApiRig, host: str):
        assert rig.client.get("/session", headers={"Host": host}).status_code == 200

    @pytest.mark.parametrize(
        "headers",
        [
            {"Origin": "http://evil.example"},
            {"Origin": "null"},
            {"Origin": "http://127.0.0.1:1"},
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "same-site"},
        ],
    )
    def test_another_site_changes_nothing(self, rig: ApiRig, headers):
        job = rig.failed("a")
        assert rig.client.post(f"/jobs/{job.job_id}/retry", headers=headers).status_code == 403
        assert rig.client.post("/session", json={"token": "x"}, headers=headers).status_code == 403
        assert rig.stack.table.get(job.job_id) == job

    def test_our_own_pages_may(self, rig: ApiRig):
        job = rig.failed("a")
        ours = {"Origin": "http://127.0.0.1", "Sec-Fetch-Site": "same-origin"}
        assert rig.client.post(f"/jobs/{job.job_id}/retry", headers=ours).status_code == 200

    def test_a_browser_signs_in_and_out(self, rig: ApiRig):
        client = rig.from_afar()
        assert client.post("/session", json={"token": "ade_x_y"}).status_code == 401
        answer = client.post("/session", json={"token": rig.token("reader", "acme")})
        assert answer.status_code == 204
        cookie = answer.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert client.get("/session").json()["tenant"] == "acme"
        client.delete("/session")
        assert client.get("/session").status_code == 401

    def test_every_answer_forbids_scripts_of_others(self, rig: ApiRig):
        for path in ("/", "/jobs", "/nowhere", "/health"):
            policy = rig.client.get(path).headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy


class TestScopes:
    @pytest.mark.parametrize("scope", list(Scope))
    def test_a_scope_may_what_it_says_and_no_more(self, rig: ApiRig, scope: Scope):
        client = rig.from_afar(rig.token(scope, "acme"))
        for right, calls in CALLS.items():
            for method, path in calls:
                refused = client.request(method, path, json={} if method == "POST" else None).status_code == 403
                assert refused == (right not in RIGHTS[scope]), (method, path)

    @pytest.mark.parametrize("scope", list(Scope))
    def test_another_tenants_job_is_not_there(self, rig: ApiRig, scope: Scope):
        other = rig.job("a", tenant="other", state=State.FAILED, files={"artifact.json": b"{}"})
        client = rig.from_afar(rig.token(scope, "acme"))
        at = f"/jobs/{other.job_id}"
        calls = [("GET", at), ("GET", f"{at}/artifact"), ("GET", f"{at}/output"), ("GET", f"{at}/result.zip")]
        calls += [("GET", f"{at}/logs"), ("GET", f"{at}/files"), ("POST", f"{at}/retry"), ("DELETE", at)]
        missing = client.get("/jobs/other-members-none")
        for method, path in calls:
            answer = client.request(method, path)
            assert answer.status_code in (403, 404)
            if method == "GET":
                told = answer.json()
                assert told | {"detail": ""} == missing.json() | {"detail": ""}
        assert rig.stack.table.get(other.job_id) == other

    def test_lists_and_counts_tell_of_one_tenant(self, rig: ApiRig):
        rig.job("a", tenant="other", state=State.FAILED)
        rig.job("b", tenant="acme", state=State.FAILED)
        client = rig.from_afar(rig.token("reader", "acme"))
        assert [job["tenant"] for job in client.get("/jobs").json()["jobs"]] == ["acme"]
        assert client.get("/jobs?tenant=other").json()["jobs"] == []
        for path in ("/overview", "/senders", "/metrics", "/review", "/memory", "/pauses"):
            assert "other" not in client.get(path).text, path
        assert client.get("/overview?tenant=other").status_code == 403

    def test_an_operator_of_one_tenant_acts_on_that_one(self, rig: ApiRig):
        other, own = rig.failed("a", tenant="other"), rig.failed("b", tenant="acme")
        client = rig.from_afar(rig.token("operator", "acme"))
        everything = {"act": "retry", "filter": {"state": ["FAILED"]}}
        assert client.post("/jobs/acts", json=everything).json()["jobs"] == [own.job_id]
        assert client.post("/jobs/acts", json=everything | {"filter": {"tenant": "other"}}).status_code == 403
        assert client.post("/pause", json={}).status_code == 403
        assert client.post("/pause", json={"tenant": "other"}).status_code == 403
        assert client.post("/pause", json={"tenant": "acme"}).status_code == 200
        assert rig.stack.table.get(other.job_id) == other

    def test_a_sender_drops_for_their_tenant_only(self, rig: ApiRig):
        client = rig.from_afar(rig.token("sender", "acme"))
        assert rig.submit(client).status_code == 202
        assert rig.submit(client, tenant="other").status_code == 403
        assert client.put("/uploads/inbox/other/x.csv", content=b"a").status_code == 403
        keys = {"tenant": "acme", "keys": ["inbox/other/people/p.csv"]}
        assert client.post("/jobs", json=keys).status_code == 400
        assert list(rig.stack.store.keys("inbox/other/")) == []

    def test_a_sender_is_the_sender_of_a_tenant(self, rig: ApiRig):
        with pytest.raises(Exception, match="--tenant"):
            rig.token("sender")


def test_what_was_done_is_kept_with_who_did_it(rig: ApiRig):
    job = rig.failed("a")
    rig.from_afar(rig.token("operator")).post(f"/jobs/{job.job_id}/retry")
    (entry,) = rig.client.get("/actions").json()["actions"]
    assert (entry["by"], entry["act"], entry["job"]) == ("operator of None", "retry", job.job_id)
