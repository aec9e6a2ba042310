"""Rules about commands. The strictest part of a command decides. The owner's patterns match parts of a command, not its text."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from albert_tools.engine.model.definition import ToolDefinition
from albert_tools.engine.policy.decision import Decision, strictest
from albert_tools.engine.policy.layers import Resource
from albert_tools.engine.policy.rules import Policy
from albert_tools.engine.policy.settings import read_governance
from albert_tools.engine.shell.command_patterns import stands_in

BASH = ToolDefinition("bash", "", (), {}, ("execute",), category="execute")


def judged(
    command: str, owner: Mapping[str, Any], project: Mapping[str, Any] | None = None, folder: str = ""
) -> Decision | None:
    rules = read_governance({"tools": {"bash": owner}})
    if project is not None:
        rules = rules.tightened(read_governance({"tools": {"bash": project}}))
    found = Policy(rules.layers(), "/w", "/home/user").touches(BASH, [Resource("shell", command, folder, "/w")])
    return strictest(found) if found else None


def verdict_under(forbidden: str, command: str) -> str:
    """Judge a command under a pattern that forbids others than `ls`."""
    assert judged("ls", {"forbidden_commands": [forbidden]}) is None
    decision = judged(command, {"forbidden_commands": [forbidden]})
    assert decision is not None
    return decision.verdict


ALLOWED = {"allowed_commands": ["git status", "git * --stat", "ls *", "./build.sh *", "tests/*", "cat *"]}
ORDINARY = {"ordinary_commands": ["make *", "./build.sh *", "rm -rf build", "git push origin main"]}
FORBIDDEN = {"forbidden_commands": ["git push *", "npm publish *"]}
FREE_GIT = {"dangerous_commands": ["git push *"], "ordinary_commands": ["git *", "ionice *"]}
DANGEROUS = {"dangerous_commands": ["terraform apply *"]}


@pytest.mark.parametrize(
    ("owner", "command", "said"),
    [
        # The shipped rules.
        ({}, "ls; git status", None),
        ({}, "ls; rm -rf build", "ask shipped.dangerous_command"),
        ({}, "ls; $x", "ask shipped.unknown_command"),
        ({}, "echo 'x", "ask shipped.unknown_command"),
        ({}, "frobnicate --wipe x", "ask shipped.unknown_command"),
        ({}, "kubectl get pods", None),
        ({}, "sudo $x", "ask shipped.dangerous_command"),
        ({}, "./build.sh", "ask shipped.unknown_command"),
        # Only the allowed commands.
        (ALLOWED, "ls", None),
        (ALLOWED, "ls -la src && git status", None),
        (ALLOWED, "ls $(cat x) | cat", None),
        (ALLOWED, "timeout 5 ls", None),
        (ALLOWED, "git log --stat", None),
        (ALLOWED, "git diff HEAD --stat", None),
        (ALLOWED, "sh -c 'ls; cat x'", None),
        (ALLOWED, "git status -s", "deny tools.bash.allowed_commands"),
        (ALLOWED, "git log", "deny tools.bash.allowed_commands"),
        (ALLOWED, "ls; pwd", "deny tools.bash.allowed_commands"),
        (ALLOWED, "ls $(pwd)", "deny tools.bash.allowed_commands"),
        (ALLOWED, "lsof", "deny tools.bash.allowed_commands"),
        (ALLOWED, "/tmp/ls", "deny tools.bash.allowed_commands"),
        (ALLOWED, "$x", "deny tools.bash.allowed_commands"),
        (ALLOWED, "ls 'x", "deny tools.bash.allowed_commands"),
        (ALLOWED, "ls $x", None),
        (ALLOWED, "xargs pwd", "deny tools.bash.allowed_commands"),
        (ALLOWED, "uv run ls", "deny tools.bash.allowed_commands"),
        (ALLOWED, "PYTHONPATH=src ls", None),
        (ALLOWED, "timeout 5 env A=1 ls", None),
        (ALLOWED, "bash -n ls", "deny tools.bash.allowed_commands"),
        (ALLOWED, "env A=1", "deny tools.bash.allowed_commands"),
        (ALLOWED, "command -v ls", "deny tools.bash.allowed_commands"),
        (ALLOWED, "PATH=. ls", "deny tools.bash.allowed_commands"),
        (ALLOWED, "cat x > ~/.bashrc", "ask shipped.dangerous_command"),
        # A list of allowed commands restricts. It does not remove questions.
        (ALLOWED, "./build.sh --fast", "ask shipped.unknown_command"),
        (ALLOWED, "tests/run", "ask shipped.unknown_command"),
        ({"allowed_commands": ["*"]}, "./other.sh", "ask shipped.unknown_command"),
        ({"allowed_commands": ["*"]}, "rm -rf x", "ask shipped.dangerous_command"),
        ({"allowed_commands": []}, "ls", "deny tools.bash.allowed_commands"),
        ({"allowed_commands": []}, "x=1", None),
        # Commands that the owner calls ordinary. A pattern must name its program, and matches only certain text.
        (ORDINARY, "./build.sh --fast", None),
        (ORDINARY, "make deploy; ls", None),
        (ORDINARY, "rm -rf build", None),
        (ORDINARY, "rm -rf src", "ask shipped.dangerous_command"),
        (ORDINARY, "make $x", None),
        (ORDINARY, "git push $x", "ask shipped.unknown_command"),
        (ORDINARY, "git push origin main", None),
        (ORDINARY, "make > .git/hooks/x", "ask shipped.dangerous_command"),
        (ORDINARY, "CC=./x make", "ask shipped.dangerous_command"),
        ({"ordinary_commands": ["*"]}, "./other.sh", "ask shipped.unknown_command"),
        # It can have brought another project's code.
        ({"ordinary_commands": ["git checkout evil"]}, "git checkout evil; make", "ask shipped.unknown_command"),
        ({"ordinary_commands": ["./deploy.sh"]}, "./deploy.sh && make", None),
        ({"ordinary_commands": ["bash a/gen.sh", "rm -rf build"]}, "rm -rf build && bash a/gen.sh && make", None),
        ({"ordinary_commands": ["bash *"]}, "bash $x/gen.sh && make", "ask shipped.unknown_command"),
        ({"ordinary_commands": ["bash *"]}, "bash ../x/gen.sh && make", "ask shipped.unknown_command"),
        ({**ORDINARY, **FORBIDDEN}, "git push origin main", "deny tools.bash.forbidden_commands"),
        # Forbidden commands, in any spelling, and commands that could be forbidden ones.
        (FORBIDDEN, "git push", "deny tools.bash.forbidden_commands"),
        (FORBIDDEN, "ls; 'git' pu\\sh origin", "deny tools.bash.forbidden_commands"),
        (FORBIDDEN, "/usr/bin/git push", "deny tools.bash.forbidden_commands"),
        (FORBIDDEN, "env A=1 sh -c 'git push'", "deny tools.bash.forbidden_commands"),
        (FORBIDDEN, "git $x", "deny tools.bash.forbidden_commands"),
        (FORBIDDEN, "$x push", "deny tools.bash.forbidden_commands"),
        (FORBIDDEN, "git push 'x", "deny tools.bash.forbidden_commands"),
        (FORBIDDEN, "git status", None),
        (FORBIDDEN, "echo git push", None),
        (FORBIDDEN, "sudo ls", "ask shipped.dangerous_command"),
        (FORBIDDEN, "rm -r completions/bash && ls | wc -l", "ask shipped.dangerous_command"),
        (FORBIDDEN, "python3 -c 'alias = x[0]' | frob --shell bash || true", "deny tools.bash.forbidden_commands"),
        (FORBIDDEN, "python3 -c 'alias = x[0]'; frob --shell bash | cat || true", "ask shipped.unknown_command"),
        (FORBIDDEN, "bash -lc '[ -f a ] && ls'; bash dev/run.sh | cat", "ask shipped.unknown_command"),
        (FORBIDDEN, "kubectl patch pod x -p '{}'; find . -execdir wc -l {} \\;", "ask shipped.dangerous_command"),
        (FORBIDDEN, "cat x | ionice xargs wc -l", "ask shipped.unknown_command"),
        (FORBIDDEN, "bash -lc 'git stash push -m wip && git log --grep push'", "ask shipped.unknown_command"),
        (FORBIDDEN, 'gh pr create --title "In bash, see $URL"', "ask shipped.dangerous_command"),
        (FORBIDDEN, "yq eval '.a | select(.b == \"x\")' f.yaml", "ask shipped.dangerous_command"),
        # A program that only runs another one is a command, too.
        ({"forbidden_commands": ["timeout *"]}, "timeout 5 ls", "deny tools.bash.forbidden_commands"),
        ({"forbidden_commands": ["bash *"]}, "bash -c ls", "deny tools.bash.forbidden_commands"),
        ({"dangerous_commands": ["uv run *"]}, "env A=1 uv run ls", "ask tools.bash.dangerous_commands"),
        # Programs that start others, and shells that run what they read.
        (FREE_GIT, "git grep for-each-repo && git commit -m help.autocorrect && cat x | ionice cat", None),
        (FREE_GIT, "git -c alias.z=push z", "ask tools.bash.dangerous_commands"),
        (FREE_GIT, "git submodule foreach git push", "ask tools.bash.dangerous_commands"),
        (FREE_GIT, "printf 'git %s' push | ionice bash", "ask tools.bash.dangerous_commands"),
        (FREE_GIT, "ionice bash || ls", None),
        (FREE_GIT, "ionice cc -I . -shared x.c | head", None),
        (FREE_GIT, "ionice cc include.h && ionice x --shell bash | head", None),
        # Commands that the owner calls dangerous.
        (DANGEROUS, "terraform apply -auto-approve", "ask tools.bash.dangerous_commands"),
        (DANGEROUS, "terraform $x", "ask tools.bash.dangerous_commands"),
        (DANGEROUS, "ls", None),
    ],
)  # fmt: skip
def test_the_strictest_part_decides(owner: Mapping[str, Any], command: str, said: str | None) -> None:
    decision = judged(command, owner)
    assert (decision and f"{decision.verdict} {decision.rule}") == said, decision


def test_a_project_only_tightens_the_rules() -> None:
    assert judged("ls", {}, {"allowed_commands": ["pwd"]}).rule == "project.tools.bash.allowed_commands"  # type: ignore[union-attr]
    assert judged("./build.sh", {}, {"allowed_commands": ["./build.sh"]}).rule == "shipped.unknown_command"  # type: ignore[union-attr]
    assert judged("./build.sh", {}, {"ordinary_commands": ["./build.sh"]}).rule == "shipped.unknown_command"  # type: ignore[union-attr]
    assert judged("rm -rf x", {}, {"allowed_commands": ["rm *"]}).rule == "shipped.dangerous_command"  # type: ignore[union-attr]


def test_the_message_names_the_part_and_the_hint_says_what_to_do() -> None:
    decision = judged("ls -la && env A=1 rm -rf 'my build'", {})
    assert decision is not None
    assert decision.rationale == "dangerous_command"
    assert decision.message == "`rm -rf 'my build'` is dangerous (recursive_delete): it deletes whole folders"
    assert decision.hint == "delete the files by name"
    decision = judged("ls; rm $x", {})
    assert decision is not None
    assert decision.rationale == "unknown_command"
    assert decision.message == "`rm …` needs approval: its arguments are not known before it runs"
    assert decision.hint == "write the command and its arguments out plainly, one command at a time"
    decision = judged("terraformer plan '*.tf'", {})
    assert decision is not None
    assert decision.hint == "the owner can list it under `tools.bash.ordinary_commands`"


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("frob test", '["frob test"]'),
        ("terraformer plan 'a b' && frob test; frob test; ls", '["terraformer plan \'a b\'", "frob test"]'),
        ("frob $x", None),
        ("frob test && rm -rf x", None),
        ("BASH_ENV=x frob test", None),
        ("frob 'x*'", None),
        ("frob t\u0435st", None),
        ("frob " + "x" * 120, None),
        ("cat x | sh", None),
        ("cat x | frob bash", None),
        ("frob bash", None),
    ],
)
def test_the_hint_offers_the_line_that_ends_the_questions(command: str, line: str | None) -> None:
    decision = judged(command, {})
    assert decision is not None
    hint = decision.hint or ""
    if line is None:
        assert "ordinary_commands: " not in hint
        assert "bash" not in command or "ordinary_commands" not in hint
        return
    assert hint == f"to allow it in every call, the owner adds to `tools.bash` of the rules: ordinary_commands: {line}"
    assert judged(command, yaml.safe_load(hint.partition(" of the rules: ")[2])) is None


@pytest.mark.parametrize(
    "command",
    [
        "env -i git push",
        "env -S 'git push'",
        "env -S'git push'",
        "env -S 'git\\_push'",
        "env -S git\\\\_push",
        "env -S git\\\\tpush",
        "env -iS'git push'",
        "script -qc'git push' /dev/null",
        "env --split-string='git push'",
        "exec git push",
        "setsid git push",
        "sudo -u root git -C x push",
        "bash -lc 'git push'",
        "bash -lc 'g\"i\"t pu\\sh'",
        "bash -lc 'x=git; $x push'",
        "zsh -c 'git push'",
        "find . -execdir git push \\;",
        "find . -okdir /usr/bin/git push \\;",
        "git -c alias.x=push x",
        "git -c ALIAS.x='!git push' x",
        "git -c include.path=f x",
        "git --config-env=alias.x=Y x",
        "git -c x.repo=. for-each-repo --config=x.repo push",
        "setsid git -c x.repo=. for-each-repo --config=x.repo push",
        "/usr/lib/git-core/git-for-each-repo --config=x.repo push",
        "git -c help.autocorrect=1 pusch",
        "watch 'ls; git push'",
        "eval 'git push'",
        "eval $x",
        "frob $x",
        'sh -c "$x"',
        "su -c 'git push' me",
        "flock f git push",
        "xargs -a f git push",
        "awk 'BEGIN{system(\"git push\")}'",
        "sed '1e git push' a",
        "python -c \"import os; os.execlp('git', 'git', 'push')\"",
        "tar xf a --to-command='npm publish'",
        "git rebase -x 'npm publish' main",
        "git bisect run npm publish",
        "make SHELL='git push' --eval=x",
        "PAGER='git push' git log",
        "echo git push | sh",
        "bash <<< 'git push'",
        "bash <<'E'\ngit push\nE",
        "sh -s < x",
        "cat x | bash -o errexit",
        "cat x | bash -euo pipefail",
        "cat x | bash --rcfile y -i",
        "cat x | bash -oo pipefail errexit",
        "cat x | env -Sbash",
        "cat x | env -S 'bash\\_-x'",
        "cat x | ionice sh -c 'b\\ash'",
        "cat x | ionice sh -c 'bash 2>&1'",
        "cat x | ionice sh -c 'bash # y'",
        "cat x | ionice sh -c '/bin/ba?h'",
        "cat x | { cd a && ionice bash; }",
        "while read a; do ionice bash; done < f",
        "exec < f; ionice bash",
        "ionice bash <<< 'git %s'",
        "cat x \\|| ionice bash",
        "echo ionice bash; cat x | nice ionice b'ash'",
        "ionice bash -c 'f() { :; }; cat x | bash'",
        "ionice awk 'BEGIN{c=\"bash\"; print | c}'",
        "cat x | ionice bash ../../dev/stdin",
        "cat x | ionice bash -c 'source <(cat)'",
        "cat x | frob 'run([\"bash\"])'",
        "cat x | frob exec:zsh-5.9",
        "cp a >(bash)",
        "source /dev/stdin",
        # Texts for a shell, and words from another program on.
        "bash -lc 'git 2>/dev/null push'",
        "setsid sh -c 'git --git-dir .git push'",
        "setsid sh -c 'git -c user.name=\"A B\" push'",
        "setsid sh -c 'cat x | (nice gi[t] push)'",
        "setsid sh -c 'g{i..i}t push'",
        "setsid sh -c 'f() { :; }; git 2>/dev/null push'",
        "bash -c -o pipefail 'git 2>x push'",
        "bash -lco pipefail 'git 2>x push'",
        "env -uSHELL bash -c 'git 2>x push'",
        "env -i bash -c 'git 2>x push' --status",
        "env -S'bash -c' 'git 2>x push'",
        "cat x | env -Sxargs git",
        "cat x | setsid /opt/bin/xargs git",
        "bash-static -lc 'git 2>x push'",
        "flock f -c 'git 2>x push'",
        "trap 'git 2>x push' EXIT",
        "ssh host \"git -c user.name='A B' push\"",
        "ionice sh -c '/bin/bas[h]'; cat x | ionice sh -c '/bin/bas[h]'",
        "cat x | ionice flock f -c '/bin/bas[h]'",
        "setsid bash -c '[g][i][t] push'",
        "setsid bash -c 'git {p..p}{u..u}{s..s}{h..h}'",
        "setsid bash -c 'gi\\\nt 2>/dev/null push'",
        "cat x | bash -lc 'xargs nice'",
        "setsid find . -exec env -S'git {} up' \\;",
        "setsid find push -newerct x -exec sh -c ':;git \"{}\"' \\;",
        "env -vvvvvvvvvvvvvvvvvvvvvvvvS'git push'",
        'setsid env "-Snice -n1$x"',
        "setsid bash -c 'cat x > >(bash)'",
        "command exec < f; ionice bash",
        "builtin eval 'git 2>x push'",
        "bash -euoc pipefail 'git 2>x push'",
        "bash -coo pipefail errexit 'git 2>x push'",
        "bash -c -o \"$x\" 'git 2>x push'",
        "fish -c ls -C 'git 2>x push'",
        "env -S 'bash -c #' 'git 2>x push'",
        "env -S 'git -c user.name=R&D push'",
        "env -S \"git -c user.name='A B'\npush\"",
        "cat x | env -S -Sxargs git",
        "sh -ec 'true &>/dev/null git 2>x push'",
        "sh -c 'A+=/../../usr/bin/git 2>x push' y",
        "ionice dash -c 'true &>/dev/null git 2>x push'",
        "git config --rename-s foo alias",
        "command -p eval 'git 2>x push'",
        "time -- eval 'git 2>x push'",
        "command -- hash -p /usr/bin/git g; g push",
        "trap 'hash -p /usr/bin/git g' DEBUG; ls; g push",
        "trap 'exec < f' DEBUG; ls; ionice bash",
        "trap '! git 2>x push' EXIT",
        "mapfile -C '! git 2>x push' -c 1 < f",
        "git rebase --exec=\"git -c user.name='A B' push\"",
        "git grep -O\"git -c user.name='A B' push\" x",
        "env GIT_SSH_COMMAND=\"git -c user.name='A B' push\" git fetch",
        "GIT_SSH_COMMAND=\"git -c user.name='A B' push\" git fetch",
        "git rebase " + "-x 'true; true' " * 300 + "-x 'git 2>x push'",
        "env -u timeout xargs git < f",
        "exec -a timeout xargs git < f",
        "env -u sh bash -c 'f() { git 2>x push; }; f'",
        "env --uns X -S 'git #' -c user.name='A B' push",
        "env -S \"git\v-c\vuser.name='A B'\vpush\"",
        "eval -- 'hash -p /usr/bin/git g'; g push",
        "bash -c -- '-x; f() { git 2>x push; }; f'",
        "sh -c \"eval 'true &>/dev/null git 2>x push'\"",
        "sh -c \"trap 'true &>/dev/null git 2>x push' EXIT\"",
        "ionice bash -eoo pipefail errexit < f",
        "read -r 'BASH_CMDS[g]' < f; g push",
        "ionice bash -c '/proc/self/exe < f'",
        "bash +c 'f() { git 2>x push; }; f'",
        "bash -rcfile y -c 'git 2>x push'",
        "bash -norc < f",
        "git -c al{i..i}as.z=push z",
        "bash -{c..c} 'f() { git 2>x push; }; f'",
        "xargs -n 1? git < f",
        "ha{s..s}h -p /usr/bin/git g; g push",
        "ev{a..a}l 'f() { git 2>x push; }; f'",
        "read BASH_CMD{S..S}[g] < f; g push",
        "mapfile -{C..C} 'f() { git 2>x push; }; f' x < f",
        "bash -c \"eval 'true &>/dev/null git 2>x push'\"; sh -c \"eval 'true &>/dev/null git 2>x push'\"",
        "gxargs git < f",
        "make -f - z <<< 'z:;@git 2>x push'",
        "make -f - z <<'E'\nz:;@git -c user.name=\"A B\" push\nE",
        "git grep -nO'git 2>x push' hi",
        "tar cf x --checkpoint-action=exec='git 2>x push' a",
        "y='git 2>x push'; tar cf x --checkpoint-action=exec=\"$y\" a",
        "zip -T '-TTgit 2>x push' o.zip a",
        "flock f -c 'f() { git 2>x push; }; f'",
        "flock f -c '[[ -e a ]] || git 2>x push'",
        'x=CMDS; read -r "BASH_${x}[g]" < f; g push',
        'printf -v "a[$x]" y',
        "bash +s x < f",
        'find push -exec git {} up "HEAD:$x" \\;',
        "genv -S \"git\\_-c\\_user.name='A B'\\_push\"",
        "flock f -c 'if [ -f x ]; then git 2>x push; fi'",
        "ionice " + "bash x " * 490,
        "ionice /bin/bas? -c 'f() { git 2>x push; }; f'",
        "ionice /bin/{b,}ash -c 'f() { git 2>x push; }; f'",
        "setsid sh -c 'git 2>/dev/null push #a'?",
        'setsid sh -c "true $x"',
        'bash -lc "git 2>/dev/null push HEAD:$x"',
        "env -S 'env -S git\\\\_push'",
        "cat x | ionice xargs git",
        "setsid find push -exec git {} \\;",
        "git config --rename-section foo alias",
        "git fetch 'ext::sh -c git% push'",
        "sed 's#.*#git push#e' a",
        "python3 -c 'system(\"\\U00000067it push\")'",
        "cat x | bash /dev/stdin a",
        "cat x | /usr/local/bin/bash",
        "cat x | env -i bash",
        "cat x | setsid -w dash -l",
        "cat x | sudo -u root zsh -s y",
        "cat x | ionice bash -c 'ls; exec bash'",
        "trap 'git push' EXIT",
        "sh -c 'A+=/../../usr/bin/git push'",
        "script -c 'GIT push'",
        "frob {git,push}",
        "/usr/lib/git-core/git-push origin",
        "sh -c 'alias g=git\ng push'",
        "hash -p /usr/bin/git g; g push",
        "command -p git push",
        "bash -c '\"$0\" push' git",
        "time -f %e npm publish",
        "frob 'git pus?'",
        "frob git p*",
        "xargs -a f npm",
        "xargs -d x git",
        "python x.py $x",
        "make SHELL=/bin/sh 'x:=$(shell git push)'",
        "make 'x!=git push' SHELL=/bin/sh all",
        "make 'MAKEFLAGS=--eval=$(shell git push)'",
        "make all SHELL=/usr/bin/git .SHELLFLAGS=push",
        "y=; awk $y 'BEGIN{system(\"git push\")}'",
        "y=; sed $y '1e git push' f",
        "sed 's/x/git push/e' f",
        "tar cIf 'git push' o.tar f",
        "git config --global alias.x '!git push' && git x",
        "git config alias.x push && git x",
        "read 'x[$(git push)]' <<< 1",
        "source /dev/stdin <<< 'git push'",
        "bash /dev/../dev/fd/0 <<< 'git push'",
        "sort $x --compress-program='git push'",
        "rg $x --pre 'git push' y",
        "git grep $x -O'git push'",
        "E='git push' git --config-env=core.editor=E commit --amend",
        "E='git push' awk 'BEGIN{system(ENVIRON[\"E\"])}'",
        "make -f - <<< '$(shell git push)'",
        "sed e <<< 'git push'",
        "sed -f /dev/stdin f <<< '1e git push'",
        "bash //dev/stdin <<< 'git push'",
        "cd /dev; bash stdin <<< 'git push'",
        "BASH_ENV=/dev/stdin bash -c : <<< 'git push'",
        "[ -v 'a[$(git push)]' ]",
        "[[ 'a[$(git push)]' -eq 0 ]]",
        "echo 'git push' > x; make x",
        "make -f- <<'E'\nall:\n\t@git push\nE",
        "make -f- <<'E'\nall:\n\t-git push\nE",
        "make -f- <<< $'all:\\n\\tgit push'",
        "printf 'all:\\n\\tgit push' | make -f-",
        "printf 'all:\\n\\t\\147it push' | make -f-",
        "printf 'all:\\n\\x9git push' | make -f-",
        "echo -e 'all:\\n\\0011git push' | make -f-",
        "make -f- <<'E'\nall:\n\tgi\\\n\tt push\nE",
        "make -f- <<'E'\nall:\n\t$Xgit push\nE",
        "git -c core.fsmonitor='gi\\\nt push;:' status",
        "E=$'gi\\x74 push' git --config-env=core.editor=E commit --amend",
    ],
)
def test_a_program_that_nobody_knows_could_run_a_forbidden_command(command: str) -> None:
    decision = judged(command, FORBIDDEN)
    assert decision is not None
    assert (decision.verdict, decision.rule) == ("deny", "tools.bash.forbidden_commands")
    assert "could" in decision.message


@pytest.mark.parametrize(
    "command",
    [
        "rm $x",
        "rm *",
        "cp $x /etc",
        "frob x",
        "frob push git",
        "frob legit push",
        "javac *.java",
        "./deploy.sh --push",
        "git log $x",
        "git checkout $x",
        "bash script.sh",
        "env -i ls",
        "git pull --rebase",
        "frob 'print(2*3)'",
        "echo 'git push' > \"$x\"",
        "gh issue create --title 'Fix [ui] again'",
        "git merge -m 'Merge [x], then (y)' b",
        "ruby -e 'puts [1, 2].sum'",
        "nohup npm start < /dev/null",
        "trap 'rm -f x' EXIT",
        "sh -ec 'npm ci && npm test'",
        "env -S 'A=1 npm ci -- a#b'",
        "hugo --renderToMemory --baseURL https://me.github.io/",
        "mapfile -d ';' x < a.txt",
        "fish --no-config x.fish",
        "frob b*",
        "printf 'a %s' \"[$x]\" && frob",
        "~/.local/bin/uv sync",
        'find . -exec grep "a $x" {} +',
        'git -c http.extraheader="AUTHORIZATION: basic $x" fetch',
        "shellcheck -s bash --color=always x.sh",
        "go test ./internal/bash -coverprofile=c.out",
        "npx prettier *.{js,ts}",
        'wget "https://x.org/?a=$x"',
        "pip install -r requirements-{dev,test}.txt",
        "git rebase HEAD@{1}",
        "env --version",
        "bash --noprofile --norc -eo pipefail -c 'npm ci && npm test'",
        "bash --norc -c -- 'npm ci'",
    ],
)
def test_other_commands_ask_although_some_commands_are_forbidden(command: str) -> None:
    decision = judged(command, FORBIDDEN)
    assert decision is not None
    assert decision.verdict == "ask", decision


@pytest.mark.parametrize(
    ("pattern", "command"),
    [
        ("shutdown", "sudo /sbin/shutdown"),
        ("rm -rf *", "sudo sh -c 'cd /; rm -rf x'"),
        ("curl https://evil.example/*", "frob 'curl https://evil.example/x'"),
        ("npm run deploy *", "npm run --silent deploy"),
        ("python3 manage.py flush *", "python3 manage.py --settings=s -v flush"),
        ("git switch main *", "git switch -q main"),
        ("/usr/bin/rm *", "rm x"),
        ("./Deploy.sh *", "Deploy.sh"),
        ("./Deploy.sh *", "bash sub/../Deploy.sh"),
        ("python3 manage.py flush *", "python3 ./manage.py flush"),
    ],
)
def test_what_a_command_could_be_or_could_run_is_compared_with_any_pattern(pattern: str, command: str) -> None:
    decision = judged(command, {"forbidden_commands": [pattern]})
    assert decision is not None
    assert decision.rule == "tools.bash.forbidden_commands"


@pytest.mark.parametrize(
    ("folder", "command", "is_listed"),
    [
        ("", "./build.sh x", True),
        ("web", "./build.sh x", False),
        ("", "cd web && ./build.sh x", False),
        ("", "cd $x && ./build.sh x", False),
        ("web", "cd .. && ./build.sh x", False),
        ("web", "../make all", False),
        ("web", "x/../../make all", False),
        ("", "./build.sh -C3 x", True),
        ("", "make -C sub && ./build.sh x", True),
        ("web", "frob data.json x", False),
        ("web", "frob --to=../../x", False),
        ("web", "./tools/gen x", True),
        ("web", "make all", True),
        ("", "cd web && make all", True),
        ("", "./build.sh ../x", True),
        ("", "frob out/../src", False),
        ("", "x=../src; frob out/$x", False),
        ("", "frob out/{../src,a}", False),
        ("", "frob out/[q]/../../src", False),
        ("", "sh -c 'frob out/.?/src'", False),
        ("", "frob --to=../x", False),
        ("", "frob --to=a/b", True),
        ("", "frob out/.{a,.}/src", False),
        ("", "frob out/{.,}./src", False),
        ("", "frob out/a?.txt", True),
        ("", "frob out/{a.c,b.c}", True),
        ("", "frob out/[ab]*.c", True),
        ("", "frob out/*", True),
        ("web", "frob ../out/a", False),
        ("web", "rm -rf ./build", False),
        ("web", "cd . && ./gradlew test", True),
        ("", "cd web && ./gradlew test", True),
        ("web", "ls 'x", False),
        ("", "source ./env && ./build.sh x", True),
        ("web", "frob --file=a.mk -fb.mk", False),
        ("", "frob --file=a.mk -fb.mk", True),
        ("", "cd /w && ./build.sh x", True),
        ("web", "cd /w/web && ./build.sh x", False),
        ("", "for i in 1 2 3; do cd web; ./gradlew test; done", False),
        ("", "for i in 1 2 3; do time cd web; ./gradlew test; done", False),
        ("", "for i in 1 2; do cd /w/web; ./gradlew test; done", True),
        ("", "for f in a b; do command -v $f; done; ./gradlew test", True),
        ("", "cd /tmp && rm -rf ./build", False),
        ("", "for i in 1 2; do (cd web && make all); done", True),
    ],
)
def test_a_pattern_names_files_from_the_top_folder(folder: str, command: str, is_listed: bool) -> None:
    patterns = ["./build.sh *", "frob data.json *", "./web/tools/gen *", "make *", "cd *", "command *"]
    patterns += [
        "rm -rf ./build",
        "rm -rf ./tmp/*",
        "frob --file=a.mk -fb.mk",
        "frob out/*",
        "frob --to=*",
        "./gradlew *",
        "./web/gradlew *",
        "source ./env",
    ]
    for key in ("ordinary_commands", "allowed_commands"):
        decision = judged(command, {key: patterns, "ordinary_commands": patterns}, folder=folder)
        assert (decision is None) is is_listed, key


@pytest.mark.parametrize(
    ("folder", "command"),
    [
        ("prod", "rm -f x"),
        ("prod/sub", "rm -f ../x"),
        ("", "cd prod; rm -f x"),
        ("", "cd /w/prod; rm -f x"),
        ("", "rm -f docs/{../prod/a,}"),
        ("", "(cd p1); (cd p2); (cd p3); (cd p4); cd prod/sub; rm -f ../x"),
        ("", 'for x in ../prod/a; do rm -f "docs/$x"; done'),
        ("", "cd ../w/prod; rm -f x"),
        ("", "for i in 1 2; do rm -f x; cd prod; done"),
        ("", "builtin cd prod; rm -f x"),
        ("", "eval 'cd prod'; rm -f x"),
        ("", "command -p cd prod; rm -f x"),
        ("", "pushd prod; popd; rm -f x"),
        ("", "sh -c 'pushd prod; rm -f x'"),
        ("", "env -C prod rm -f x"),
        ("", "x=prod; cd $x; rm -f x"),
        ("", "cd a; cd b; cd c; cd d; cd e; rm -f x"),
        ("", "for i in 1 2 3; do cd a; done; rm -f x"),
        ("", "rm -f /w/prod/x"),
        ("", "rm -f /proc/self/cwd/prod/x"),
    ],
)
def test_a_forbidden_path_is_found_from_each_folder_that_a_command_enters(folder: str, command: str) -> None:
    decision = judged(command, {"forbidden_commands": ["rm * prod/*"]}, folder=folder)
    assert decision is not None
    assert decision.rule == "tools.bash.forbidden_commands"


@pytest.mark.parametrize(
    ("pattern", "command", "verdict"),
    [
        ("./scripts/*", "scripts/a", "deny"),
        ("./scripts/*", "bash ./scripts/a", "deny"),
        ("./scripts/*", "cd scripts; frob a", "ask"),
        ("./scripts/*", "frob scripts2/a", "ask"),
        ("/usr/sbin/* *", "/usr/sbin/frob x", "deny"),
        ("/usr/sbin/* *", "frob x", "ask"),
    ],
)
def test_a_star_in_a_folder_is_any_program_of_the_folder(pattern: str, command: str, verdict: str) -> None:
    assert verdict_under(pattern, command) == verdict


@pytest.mark.parametrize(
    ("pattern", "command", "verdict"),
    [
        ("python3 ./manage.py flush", "python3 manage.py flush", "deny"),
        ("frob ./secret", "frob docs/{../secret,}", "deny"),
        ("frob --file=prod/a *", "cd prod; frob --file=a x", "deny"),
        ("frob --file=prod/a *", 'for x in ..; do frob "--file=docs/$x/prod/a" x; done', "deny"),
        ("git push prod/*", "git -C prod push a", "deny"),
        ("frob @prod/a", "cd prod; frob @a", "deny"),
        ("cat secret", 'for x in secret; do cat "./$x"; done', "deny"),
        ("cat secret", "cat /w/secret", "deny"),
        ("frob prod/a", "frob /etc/b", "ask"),
        ("frob prod/*", "cd docs; frob b", "ask"),
        ("frob .env*", 'cd "$x"; frob b.txt', "ask"),
        ("frob */secrets/*", "cd x/secrets; frob a", "deny"),
        ("frob *:prod/*", "cd prod; frob HEAD:./a", "deny"),
        ("frob HEAD:prod/a", "cd prod; frob HEAD:./a", "deny"),
        ("cat prod/a", "bash -lc 'cd prod; cat a'", "deny"),
        ("cat prod/a", "find prod -execdir cat a \\;", "deny"),
        ("cat prod/a", "cd prod; make -f - <<< 'all: ; cat a'", "deny"),
        ("./scripts/*", "cd scripts; bash a.sh", "deny"),
        ("./deploy.py *", "python3 deploy.py", "deny"),
        ("./tools/*", "cd tools; uv run python -u x.py -n", "deny"),
        ("cat secret", "cat /tmp/x://../../w/secret", "deny"),
        ("cat secret", "cat x://../secret", "deny"),
        ("cat config*.yml", "for i in 1; do cd config; cat prod.yml; done", "deny"),
        ("cat config*.yml", "cat /w/config/prod.yml", "deny"),
        ("frob prod/*", "frob /etc/b ../a /tmp/prod", "ask"),
        ("make * URL=https://prod.example/*", "cd web; make URL=https://prod.example/a", "deny"),
        ("git gc *", '/usr/lib/git-core/git-"$x" --auto', "deny"),
        ("git-crypt unlock *", "./git-crypt unlock", "deny"),
        ("git-crypt *", "bash -lc 'git-crypt unlock'", "deny"),
        ("rm * *prod*", "cd prod; rm -f a", "deny"),
        ("cat secret*", "cd secrets; cat a.{txt,md}", "deny"),
        ("git add 2024/*", "git -C 2024 add a.txt", "deny"),
        ("cat prod/a", "[ $x ]; cd prod; cat a", "deny"),
        ("git push *", "if [ $x -gt 1 ]; then y=push; git $y; fi", "deny"),
        ("grep * prod/*", "frob; grep -C 3 x a", "ask"),
        ("cat /etc/*", "cat ../../etc/hostname", "deny"),
        ("cat prod/a", "cd prod; cat ../../proc/self/cwd/a", "deny"),
        ("ssh prod1 rm *", "ssh prod? 'rm -rf x'", "deny"),
        ("frob prod/*", "cd docs; ./x & for i in 1 2; do ./x; done; frob a", "ask"),
        ("make * deploy *", 'frob; make "test-$x"', "ask"),
        ("frob deploy:*", "cd web; frob build:x", "ask"),
        ("frob https://evil.example/*", "cd web; frob https://example.org/a", "ask"),
        ("cat prod/*", "cd $x; cat /etc/hostname", "ask"),
        ("python3 manage.py migrate *", "python manage.py migrate", "deny"),
        ("python manage.py migrate *", "/usr/bin/python3 manage.py migrate --plan", "deny"),
        ("pytest *integration*", "uv run python3 -m pytest -q tests/integration", "deny"),
        ("* secrets/* *", "frob; grep -rn --include=*.py x .", "ask"),
        ("make deploy *", "cd web; make ./deploy", "deny"),
        ("rm * archive/2024/*", "(exit 24); rm -f archive/20$?/a.txt", "deny"),
        ("rm * archive/2024/*", "(exit 24); cd archive/20$? && rm -f a.txt", "deny"),
        ("rm * archive/2024/*", 'make; if [ $? -ne 0 ]; then echo "exit $?"; exit $?; fi; frob', "ask"),
        ("npm run deploy -- production *", "npm run deploy production", "deny"),
        ("git checkout -- *", "frob; git checkout -b x", "ask"),
        ("python2 *", "frob; python3 x.py", "ask"),
        ("rm * prod*", "(cd a); (cd b); (cd c); (cd d); cd prod; rm -f Makefile", "deny"),
        ("git add prod*", "git -C prod add .", "deny"),
        ("git add *prod*", "git -C x -C prod -C . add Makefile", "deny"),
        ("git add prod*", "frob; git -C web add .", "ask"),
        ("frob prod/*", "sudo frob /etc/b", "ask"),
    ],
)
def test_a_forbidden_pattern_is_compared_with_all_that_a_command_can_name(
    pattern: str, command: str, verdict: str
) -> None:
    assert verdict_under(pattern, command) == verdict


def test_the_hint_says_how_to_write_another_command() -> None:
    said = [judged(command, {"forbidden_commands": ["cat prod/a"]}) for command in ("cat prod/a", "cat /x/prod/a")]
    assert [(d.message, d.hint) for d in said if d is not None] == [
        ("`cat prod/a` is forbidden by 'cat prod/a'", "do without it"),
        (
            "`cat /x/prod/a` could be a command that is forbidden by 'cat prod/a'",
            "if it is another command, write it with plain paths and without variables",
        ),
    ]


def test_a_text_with_many_commands_is_compared_with_each_pattern_once() -> None:
    stands_in.cache_clear()
    judged(";".join(f"./p{n} x" for n in range(100)), {"forbidden_commands": ["git push *", "git * push *"]})
    assert stands_in.cache_info().misses == 2


def test_the_message_says_that_another_program_could_run_a_forbidden_command() -> None:
    decision = judged("setsid git push origin", FORBIDDEN)
    assert decision is not None
    assert decision.message == "`setsid git push origin` could run a command that is forbidden by 'git push *'"
    assert decision.hint == "write the command out by itself, without variables and without another program around it"


def test_the_rules_apply_to_the_arguments_of_a_program() -> None:
    policy = Policy(read_governance({}).layers(), "/w", "/home/user")

    def said(*argv: str) -> list[str]:
        return [d.rule for d in policy.touches(BASH, [Resource("program", shlex.join(argv), "")])]

    assert said("echo", "; rm -rf x", "$(sudo ls)") == []
    assert said("rm", "-rf", "x") == ["shipped.dangerous_command"]
    assert said("sh", "-c", "sudo ls") == ["shipped.dangerous_command"]
    assert said("python", "-c", "1") == ["shipped.unknown_command"]


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("FOO=1", []),
        ("PYTHONPATH=src", ["shipped.unknown_command"]),
        ("PATH=.", ["shipped.unknown_command"]),
        ("LD_PRELOAD=./x.so", ["shipped.unknown_command"]),
        ("BASH_ENV=x", ["shipped.unknown_command"]),
        ("n=a[$(ls)]", ["shipped.unknown_command"]),
        ("EDITOR=env -S 'git\\_push'", ["tools.bash.forbidden_commands"]),
        ("EDITOR=bash -lc 'git 2>x push'", ["tools.bash.forbidden_commands"]),
        ("EDITOR=code --wait", ["shipped.unknown_command"]),
        (f"EDITOR={' ' * 33_000}bash -lc 'git 2>x push'", ["tools.bash.forbidden_commands"]),
    ],
)
def test_unlisted_environment_variables_ask_or_are_denied(entry: str, said: list[str]) -> None:
    policy = Policy(read_governance({"tools": {"bash": FORBIDDEN}}).layers(), "/w", "/home/user")
    assert [d.rule for d in policy.touches(BASH, [Resource("environment", entry, "")])] == said


@pytest.mark.parametrize(
    "command", ["git -C x push", "npm --prefix . publish", "npm -w app --silent publish", "npm A=1 publish"]
)
def test_options_and_variables_before_a_subcommand_hide_nothing(command: str) -> None:
    decision = judged(command, FORBIDDEN)
    assert decision is not None
    assert (decision.verdict, decision.rule) == ("deny", "tools.bash.forbidden_commands")
