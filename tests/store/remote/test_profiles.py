"""Credentials from the files of the AWS command line, on a server that checks signatures and rights."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import requests

from tdbg_lab.errors import ConfigError
from tdbg_lab.run import list_runs, open_run
from tdbg_lab.store.remote import parse_url
from tdbg_lab.store.remote.failures import RemoteError
from tdbg_lab.store.remote.options import storage_options
from tdbg_lab.store.remote.place import mirror_path
from tests.store.remote.sending import fake_training, send

ROLE = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}],
}
EVERYTHING = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": ["s3:*", "sts:*"], "Resource": "*"}],
}
VARIABLES = ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN", "PROFILE", "DEFAULT_PROFILE", "REGION")
VARIABLES += ("DEFAULT_REGION", "ENDPOINT_URL", "ENDPOINT_URL_S3", "SHARED_CREDENTIALS_FILE", "CONFIG_FILE")


class Account:
    """A user that may use S3, whose keys the server checks, and the files of the command line."""

    def __init__(self, bucket, folder) -> None:
        import boto3

        self.server = "http://{}:{}".format(*bucket.server)
        self.folder = folder
        folder.mkdir()
        keys = {"aws_access_key_id": "id", "aws_secret_access_key": "secret"}
        iam = boto3.client("iam", endpoint_url=self.server, region_name="us-east-1", **keys)
        name = bucket.name
        iam.create_user(UserName=name)
        iam.put_user_policy(UserName=name, PolicyName="all", PolicyDocument=json.dumps(EVERYTHING))
        made = iam.create_access_key(UserName=name)["AccessKey"]
        self.key, self.secret = made["AccessKeyId"], made["SecretAccessKey"]
        self.role = iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(ROLE))["Role"]["Arn"]
        iam.put_role_policy(RoleName=name, PolicyName="all", PolicyDocument=json.dumps(EVERYTHING))

    def keys(self, profile: str = "default", secret: str | None = None) -> None:
        """Write the keys of a profile; earlier ones are gone."""
        lines = [f"[{profile}]", f"aws_access_key_id = {self.key}"]
        self.write("credentials", [*lines, f"aws_secret_access_key = {secret or self.secret}"])

    def write(self, file: str, lines: list[str]) -> None:
        (self.folder / file).write_text("\n".join(lines) + "\n")


@pytest.fixture
def account(bucket, tmp_path, monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(f"AWS_{name}", raising=False)
    made = Account(bucket, tmp_path / ".aws")
    requests.post(f"{made.server}/moto-api/reset-auth", data="0", timeout=10)
    yield made
    requests.post(f"{made.server}/moto-api/reset-auth", data="inf", timeout=10)


def test_runs_go_and_come_with_the_keys_of_the_default_profile(bucket, account):
    account.keys()
    account.write("config", ["[default]", "region = us-east-1", f"endpoint_url = {account.server}"])
    training, spooled = fake_training(bucket.url("runs/first"))
    training.step()
    assert send(spooled, {})
    assert open_run(bucket.url("runs/first")).last_step == 0
    assert [run.url for run in list_runs(bucket.url("runs"))] == [bucket.url("runs/first")]


def test_profile_is_chosen_by_option_or_environment(bucket, account, monkeypatch):
    account.keys("work")
    account.write(
        "config",
        [
            "[profile work]",
            "services = here",
            "[services here]",
            "s3 =",
            f"  endpoint_url = {account.server}",
        ],
    )
    training, spooled = fake_training(bucket.url("first"))
    training.step()
    assert send(spooled, {"profile": "work"})
    monkeypatch.setenv("AWS_PROFILE", "work")
    assert open_run(bucket.url("first")).last_step == 0


def test_keys_that_are_given_go_before_a_profile_that_is_not(bucket, account, monkeypatch):
    account.keys(secret="wrong")
    given = {"endpoint": account.server, "access_key_id": account.key, "secret_access_key": account.secret}
    training, spooled = fake_training(bucket.url("first"))
    training.step()
    assert not send(spooled, {"endpoint": account.server})
    assert "do not allow to" in spooled.state().problem
    assert send(spooled, given)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", account.key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", account.secret)
    assert open_run(bucket.url("first"), storage_options={"endpoint": account.server}).last_step == 0
    with pytest.raises(RemoteError, match="do not allow to read"):
        open_run(bucket.url("first"), storage_options={"endpoint": account.server, "profile": "default"})


def test_role_is_assumed(bucket, account):
    account.keys()
    here = ["[services here]", *(f"{one} =\n  endpoint_url = {account.server}" for one in ("s3", "sts"))]
    role = ["[profile job]", f"role_arn = {account.role}", "source_profile = default", "services = here"]
    account.write("config", [*role, "region = us-east-1", *here])
    training, spooled = fake_training(bucket.url("first"))
    training.step()
    assert send(spooled, {"profile": "job"})
    assert open_run(bucket.url("first"), storage_options={"profile": "job"}).last_step == 0


def test_sign_in_that_fails_is_told_and_the_data_kept(bucket, account, tmp_path):
    program = tmp_path / "sign_in.py"
    program.write_text("import sys\nsys.exit('the token has expired')\n")
    process = f"credential_process = {sys.executable} {program}"
    account.write("config", ["[profile work]", process, f"endpoint_url = {account.server}"])
    training, spooled = fake_training(bucket.url("first"))
    training.step()
    assert not send(spooled, {"profile": "work"})
    said = spooled.state().problem
    assert said.startswith("The profile 'work' of AWS gives no credentials (")
    assert "the token has expired" in said
    assert said.endswith("sign in again (aws sso login --profile work) or set it right.")
    keys = {"Version": 1, "AccessKeyId": account.key, "SecretAccessKey": account.secret}
    program.write_text(f"open({str(tmp_path / 'asked')!r}, 'a').write('.')\nprint({json.dumps(keys)!r})\n")
    assert send(spooled, {"profile": "work"})
    assert open_run(bucket.url("first"), storage_options={"profile": "work"}).last_step == 0
    assert (tmp_path / "asked").read_text() == "."  # it may be a program that asks the user


def test_what_is_wrong_with_a_profile_is_said(account):
    url = parse_url("s3://bucket/x")
    account.keys("work")
    account.write("config", ["[profile empty]", "region = eu-west-1"])
    with pytest.raises(ConfigError, match=r"There is no profile 'wrok' .*known profiles: 'empty', 'work'\."):
        storage_options(url, {"profile": "wrok"})
    with pytest.raises(ConfigError, match="'empty' of AWS has no credentials: aws configure --profile empty"):
        storage_options(url, {"profile": "empty"})
    with pytest.raises(ConfigError, match="'profile' is not the name of a profile of AWS"):
        storage_options(url, {"profile": 3})
    account.write("config", ["no section"])
    with pytest.raises(ConfigError, match=r"The files of AWS \(~/\.aws\) cannot be read: Unable to parse"):
        storage_options(url, {"profile": "work"})
    with pytest.raises(ConfigError, match="'profile' is not a storage option of gs://"):
        open_run("gs://bucket/x", storage_options={"profile": "work"})


def test_files_without_a_default_profile_change_nothing(account):
    account.keys("work")
    assert storage_options(parse_url("s3://bucket/x"), {"region": "eu-west-1"}) == {"region": "eu-west-1"}


def test_endpoint_of_a_profile_has_mirrors_of_its_own(account):
    account.keys()
    url = parse_url("s3://bucket/x")
    plain = mirror_path(url, storage_options(url))
    account.write("config", ["[default]", f"endpoint_url = {account.server}"])
    assert mirror_path(url, storage_options(url)) != plain
    other = "http://127.0.0.1:9"
    assert storage_options(url, {"endpoint": other})["endpoint"] == other


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"profile": "work"},
            "'work' of AWS is read by botocore, which is not installed: pip install tdbg-lab[s3]",
        ),
        ({}, "{}"),
    ],
)
def test_missing_botocore_is_said_where_a_profile_is_named(account, options, said):
    account.keys()
    code = f"""
import sys
sys.modules["botocore"] = None
from tdbg_lab.store.remote import parse_url
from tdbg_lab.store.remote.options import storage_options
try:
    print(storage_options(parse_url("s3://bucket/x"), {options!r}))
except ImportError as error:
    print(error)
"""
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert said in found.stdout
