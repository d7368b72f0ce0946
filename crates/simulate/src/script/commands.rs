//! Shell commands that change a host's TCP: `sysctl`, writes to /proc/sys, `ip route … initcwnd`.

/// A setting that a command makes: a sysctl with its dots, or a route's metric.
pub(super) type Setting = (String, String);

/// What `defaults.sh` sets, which Google's scripts and the kernel's self-tests call first (as in Linux 6.12,
/// tools/testing/selftests/net/packetdrill), as far as it is about TCP's behaviour.
const DEFAULTS: [(&str, &str); 14] = [
    ("net.ipv4.tcp_rmem", "4096 540000 15728640"),
    ("net.ipv4.tcp_wmem", "4096 262144 4194304"),
    ("net.ipv4.tcp_timestamps", "1"),
    ("net.ipv4.tcp_syn_retries", "5"),
    ("net.ipv4.tcp_synack_retries", "5"),
    ("net.ipv4.tcp_frto", "2"),
    ("net.ipv4.tcp_sack", "1"),
    ("net.ipv4.tcp_dsack", "1"),
    ("net.ipv4.tcp_reordering", "3"),
    ("net.ipv4.tcp_congestion_control", "cubic"),
    ("net.ipv4.tcp_slow_start_after_idle", "0"),
    ("net.ipv4.tcp_early_retrans", "4"),
    ("net.ipv4.tcp_recovery", "1"),
    ("net.ipv4.tcp_ecn", "0"),
];

/// The metrics of a route that TCP reads.
const METRICS: [&str; 5] = ["initcwnd", "initrwnd", "rto_min", "quickack", "advmss"];

/// The settings in a piece of shell, and those of its commands that make none.
pub(super) fn settings(shell: &str) -> (Vec<Setting>, Vec<String>) {
    let mut settings = Vec::new();
    let mut others = Vec::new();
    // A backslash at a line's end joins lines.
    for command in shell.replace("\\\n", " ").split(['\n', ';', '&']) {
        let words: Vec<&str> = command.split_whitespace().collect();
        let Some(program) = words.first() else { continue };
        if program.starts_with('#') {
            continue;
        }
        let found = of_command(&words);
        if found.is_empty() {
            others.push(words.join(" "));
        }
        settings.extend(found);
    }
    (settings, others)
}

fn of_command(words: &[&str]) -> Vec<Setting> {
    let last = |word: &&str| word.rsplit('/').next().unwrap_or_default().to_owned();
    if words.iter().any(|word| last(word) == "defaults.sh") {
        return DEFAULTS.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    }
    match words.first().map(last).as_deref() {
        Some("sysctl") => assignments(&words[1..]),
        Some("set_sysctls.py") => assignments(&words[1..]),
        Some("echo") => written(words).into_iter().collect(),
        Some("ip") if words.contains(&"route") => metrics(words),
        _ => Vec::new(),
    }
}

/// `net.ipv4.tcp_sack=0 net.ipv4.tcp_rmem="4096 8192 16384"`, where quotes join words.
fn assignments(words: &[&str]) -> Vec<Setting> {
    let mut list: Vec<Setting> = Vec::new();
    let mut open = None;
    for word in words.iter().filter(|word| !word.starts_with('-')) {
        let quotes = word.matches(['"', '\'']).count();
        if let (Some(_), Some((_, value))) = (open, list.last_mut()) {
            value.push(' ');
            value.push_str(word.trim_matches(['"', '\'']));
        } else if let Some((name, value)) = word.split_once('=') {
            list.push((dotted(name.trim_matches(['"', '\''])), value.trim_matches(['"', '\'']).to_owned()));
        }
        open = if quotes % 2 == 1 { open.map_or(Some(()), |()| None) } else { open };
    }
    list
}

/// `echo 1 > /proc/sys/net/ipv4/tcp_sack`
fn written(words: &[&str]) -> Option<Setting> {
    let arrow = words.iter().position(|word| *word == ">")?;
    let file = words.get(arrow + 1).filter(|file| file.starts_with("/proc/sys/"))?;
    let value = words.get(1..arrow)?.join(" ");
    Some((dotted(file), value.trim_matches(['"', '\'']).to_owned()))
}

/// `ip route change … initcwnd 3`
fn metrics(words: &[&str]) -> Vec<Setting> {
    let pairs = words.windows(2).filter(|pair| METRICS.contains(&pair[0]));
    pairs.map(|pair| (pair[0].to_owned(), pair[1].to_owned())).collect()
}

/// A sysctl's name with dots, from either spelling.
fn dotted(name: &str) -> String {
    name.trim_start_matches("/proc/sys/").replace('/', ".")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(name: &str, value: &str) -> Setting {
        (name.into(), value.into())
    }

    #[test]
    fn every_way_to_set_a_sysctl_is_read() {
        let shell = "sysctl -q -w net.ipv4.tcp_sack=0 net.ipv4.tcp_ecn=1\n\
                     ./set_sysctls.py /proc/sys/net/ipv4/tcp_recovery=0 \\\n   /proc/sys/net/ipv4/tcp_frto=0\n\
                     echo 1 > /proc/sys/net/ipv4/tcp_timestamps; sysctl -q net.ipv4.tcp_rmem=\"1 2 3\" a.b=4\n\
                     ip route change 192.168.0.0/16 dev tun0 initcwnd 3";
        let (settings, others) = settings(shell);
        let wanted = [
            pair("net.ipv4.tcp_sack", "0"),
            pair("net.ipv4.tcp_ecn", "1"),
            pair("net.ipv4.tcp_recovery", "0"),
            pair("net.ipv4.tcp_frto", "0"),
            pair("net.ipv4.tcp_timestamps", "1"),
            pair("net.ipv4.tcp_rmem", "1 2 3"),
            pair("a.b", "4"),
            pair("initcwnd", "3"),
        ];
        assert_eq!(settings, wanted);
        assert_eq!(others, [""; 0]);
    }

    #[test]
    fn other_commands_are_named() {
        let (settings, others) = settings("../common/defaults.sh\ntc qdisc add dev tun0 root fq\n# note");
        assert_eq!(settings.len(), DEFAULTS.len());
        assert_eq!(others, ["tc qdisc add dev tun0 root fq"]);
    }
}
