//! Children that cannot outlive the lab.

use std::ffi::OsStr;
use std::process::Command;

/// `program` under two tools of util-linux. `setpriv` has the kernel kill it when its parent's thread ends,
/// however that ends; `unshare` makes it the first process of a PID namespace, whose end is the end of all
/// processes in it. (std offers no safe way to do either between fork and exec.)
pub(crate) fn mortal(program: &OsStr) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--", "unshare", "--pid", "--fork", "--kill-child=KILL", "--"]);
    command.arg(program);
    command
}
