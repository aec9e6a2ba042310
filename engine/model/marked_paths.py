"""Recognizes files with a meaning by their paths: those that others execute, and those that hold credentials.

A shell, an editor, git, a build or a server reads an executed file and runs what it says. The approval of a tool does not answer a
question about writing such a file, because what is written there runs later, outside of the sandbox. A review marks both kinds.
"""

from __future__ import annotations

import posixpath
import unicodedata

#: Files that a shell, git or an editor executes when it starts there, or that name programs that it executes.
START_UP = frozenset(
    (
        ".bash_login .bash_logout .bash_profile .bashrc .profile .zlogin .zprofile .zshenv .zshrc .envrc .exrc .gitconfig .inputrc "
        ".npmrc .nvimrc .pdbrc .pypirc .vimrc .nvim.lua .dir-locals.el .gdbinit .lldbinit .irbrc .pryrc .yarnrc .yarnrc.yml .cargo "
        ".vscode .idea .devcontainer .devcontainer.json"
    ).split()
)
#: Hidden files that name no program. Every other file with a hidden name or folder may configure one: `.bashrc`, `.github/…`.
_HARMLESS = frozenset((".gitignore", ".dockerignore", ".editorconfig"))
#: Files with commands of builds, tests, packages and services, in lower case.
_NAMES = frozenset(
    (
        "makefile gnumakefile justfile rakefile gemfile jenkinsfile vagrantfile procfile brewfile dockerfile containerfile "
        "package.json composer.json deno.json cargo.toml build.rs pyproject.toml setup.py setup.cfg conftest.py noxfile.py tox.ini "
        "sitecustomize.py usercustomize.py manage.py build.gradle build.gradle.kts pom.xml build.xml cmakelists.txt crontab hooks "
        "docker-compose.yml docker-compose.yaml compose.yml compose.yaml azure-pipelines.yml bitbucket-pipelines.yml appveyor.yml "
        "cloudbuild.yaml cloudbuild.yml taskfile.yml gruntfile.js gulpfile.js pipfile requirements.txt pytest.ini tasks.py "
        "fabfile.py dodo.py wsgi.py asgi.py podfile fastfile guardfile capfile dangerfile config.ru mix.exs build.zig build.sbt "
        "meson.build sconstruct snakefile tiltfile earthfile wscript gradlew mvnw build.bazel module.bazel lefthook.yml go.mod "
        "pnpm-workspace.yaml pnpm-lock.yaml package-lock.json yarn.lock conf.py mypy.ini"
    ).split()
)
#: The ends of scripts, and of what is loaded like one.
_ENDS = (
    ".sh .bash .zsh .fish .ksh .csh .command .bat .cmd .ps1 .psm1 .vbs .exe .com .scr .dll .so .dylib .desktop .service .timer "
    ".socket .plist .mk .gradle .rc .pth .nix .cmake .config.js .config.cjs .config.mjs .config.ts .conf.js .jar .vbe .wsf .reg"
).split()

#: Files and folders with passwords, tokens and keys, in lower case. In a folder, every file counts.
_CREDENTIALS = frozenset(
    (
        ".env .netrc _netrc .pypirc .npmrc .yarnrc.yml .git-credentials .pgpass .my.cnf .mylogin.cnf .boto .s3cfg .htpasswd "
        ".dockercfg .vault-token credentials credentials.json credentials.toml id_rsa id_dsa id_ecdsa id_ed25519 "
        "kubeconfig secrets.json secrets.toml secrets.yaml secrets.yml "
        ".ssh .gnupg .aws .azure .gcloud .kube .docker .password-store"
    ).split()
)
_CREDENTIAL_ENDS = (".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk", ".tfvars")


def is_executed(path: str) -> bool:
    """Whether others execute a file with this path, by its names alone. A folder counts as one with any file."""
    *folders, name = _names(path)
    if any(folder.startswith(".") and folder != ".." for folder in folders) or "hooks" in folders:
        return True
    if name.startswith(".") and name not in (".", ".."):
        return name not in _HARMLESS
    return name in _NAMES or name.endswith(tuple(_ENDS)) or name.startswith(("dockerfile.", "makefile."))


def is_start_up(path: str) -> bool:
    """Whether a path, relative to the top folder of a workspace, is one of `START_UP` or in it."""
    return _names(path)[0] in START_UP


def holds_credentials(path: str) -> bool:
    """Whether a file with this path holds passwords, tokens or keys, by its names alone."""
    *folders, name = _names(path)
    if not _CREDENTIALS.isdisjoint((*folders, name)) or (folders[-1:] == [".git"] and name == "config"):
        return True
    return name.startswith(".env.") or name.endswith(_CREDENTIAL_ENDS)


def _names(path: str) -> list[str]:
    # Some file systems find a file by every spelling that has the same folded form.
    return unicodedata.normalize("NFKC", posixpath.normpath(path)).casefold().split("/")
