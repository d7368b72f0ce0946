//! Captures that have nothing to tell of: a gate that passes on nothing is open.

use tcpwhy_diagnose::Diagnosis;
use tcpwhy_diagnose::report::{Protocol, Source};

use crate::calls::Recorded;
use crate::fail_on::FailOn;
use crate::filter::Filter;

/// Why an input that could be read shows nothing.
pub(crate) const NO_PACKETS: &str = "no packet in it: tcpdump -i any sees every interface, without a filter every packet, and writes \
                                     what it has when Ctrl-C ends it";

/// What the captures of one input had.
#[derive(Debug, Default)]
pub(crate) struct Had {
    /// Packets of every protocol, and recordings of calls, whatever was asked for.
    packets: u64,
    recordings: u64,
    /// The most connections that one of them had, of those that were asked for.
    connections: usize,
    /// Whether one shows what was asked for.
    pub(crate) something: bool,
}

impl Had {
    /// Another capture.
    pub(crate) fn capture(&mut self, diagnosis: &Diagnosis, recorded: Option<&Recorded>) {
        self.packets += diagnosis.capture().packets;
        self.recordings += u64::from(recorded.is_some());
        self.connections = self.connections.max(diagnosis.len());
    }

    /// Why the input shows nothing, and what to try; `None` where it shows something. `asked` is the only connection
    /// that was asked for.
    pub(crate) fn nothing(self, filter: Option<&Filter>, asked: Option<u64>) -> Option<String> {
        let Self { packets, recordings, connections, something } = self;
        if something {
            return None;
        }
        Some(match (filter, asked) {
            _ if packets + recordings == 0 => NO_PACKETS.to_owned(),
            (Some(filter), _) if connections == 0 => format!(
                "nothing with {} among its {packets} packet{}: without that, tcpwhy lists its connections",
                filter.describe(),
                if packets == 1 { "" } else { "s" }
            ),
            (_, Some(id)) if is_beyond(id, connections) => no_connection(id, connections),
            _ => NO_TCP.to_owned(),
        })
    }
}

const NO_TCP: &str =
    "no TCP packet in it, so --fail-on has nothing to judge: was the right interface and port captured?";

fn is_beyond(id: u64, connections: usize) -> bool {
    usize::try_from(id).map_or(true, |id| id >= connections)
}

fn no_connection(id: u64, connections: usize) -> String {
    let instead = match connections {
        0 => "there is none at all".to_owned(),
        1 => "there is only 0".to_owned(),
        many => format!("try 0 to {}", many - 1),
    };
    format!("no connection {id}, {instead}")
}

/// The rule that judges UDP, too.
const OF_UDP: &str = "uneven-cadence";

/// Whether `--fail-on` can judge something of what is shown. A gate that cannot would pass whatever was captured.
pub(crate) fn can_judge(fail_on: &[FailOn], shown: &dyn Source, recorded: Option<&Recorded>) -> bool {
    let has_calls = recorded.is_some_and(|recorded| !recorded.sockets.is_empty());
    let by_calls = has_calls && fail_on.iter().any(|name| name.beyond_calls().is_none());
    let of_udp = fail_on.iter().any(|name| matches!(name, FailOn::Rule(rule) if rule.name == OF_UDP));
    by_calls || shown.connections().any(|connection| of_udp || connection.protocol == Protocol::Tcp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reason_is_told() {
        let filter = Filter::new(&[], &[81]);
        let had = |packets, connections| Had { packets, connections, ..Had::default() };
        let why = |had: Had, asked| had.nothing(filter.as_ref(), asked).expect("a reason");
        assert_eq!(why(had(0, 0), Some(3)), NO_PACKETS);
        assert!(why(had(7, 0), Some(3)).starts_with("nothing with port 81 among its 7 packets"));
        assert_eq!(why(had(7, 3), Some(3)), "no connection 3, try 0 to 2");
        assert_eq!(why(had(7, 3), Some(2)), NO_TCP);
        assert_eq!(Had { something: true, ..had(7, 3) }.nothing(None, Some(3)), None);
    }
}
