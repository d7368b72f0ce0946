//! Socket calls of a script: what they return, and when.

use super::host::{Host, Reply};
use super::outcome::{Difference, Note};
use super::request::{self, Request, number};
use super::run::{Runner, Stop, failed, unsupported};
use super::show;
use super::syntax::{Action, Call, Event, Value};

/// A call that has not returned.
pub(super) struct Waiting {
    event: Event,
    request: Request,
    /// Bytes it took already.
    done: u64,
    /// When the script says it returns, ns.
    returns: u64,
}

impl<H: Host> Runner<'_, H> {
    /// Makes a call; `base` is what the script's relative times count from.
    pub(super) fn call(&mut self, event: &Event, call: &Call, base: u64) -> Result<(), Stop> {
        let Some(request) = request::request(call) else {
            return Err(unsupported(event, format!("the call {call}")));
        };
        if matches!(request, Request::Connect(_)) {
            self.mapping.begin();
        }
        self.note_unlooked(event, call);
        let relative = !matches!(event.when, super::When::At(_) | super::When::Within(..));
        let returns = call.returns.map(|time| if relative { base + time } else { time });
        let waiting = Waiting { event: event.clone(), request, done: 0, returns: returns.unwrap_or(0) };
        self.waiting = Some(waiting);
        self.retry_call()?;
        if self.waiting.is_some() && returns.is_none() {
            self.waiting = None;
            return Err(result_differs(event, call, call.result.to_string(), "the call waits".into()));
        }
        Ok(())
    }

    /// Repeats the call that waits, if one does.
    pub(super) fn retry_call(&mut self) -> Result<(), Stop> {
        let Some(waiting) = &mut self.waiting else { return Ok(()) };
        let request = match &waiting.request {
            Request::Write { socket, len, more, at_once } => Request::Write {
                socket: *socket,
                len: len.saturating_sub(waiting.done),
                more: *more,
                at_once: *at_once,
            },
            other => other.clone(),
        };
        let reply = self.host.call(&request);
        if let Reply::Waits(done) = reply {
            waiting.done += done;
            return Ok(());
        }
        let Some(Waiting { event, done, returns, .. }) = self.waiting.take() else { return Ok(()) };
        let Action::Call(call) = &event.action else { return Ok(()) };
        if call.returns.is_some() {
            self.check_return_time(&event, call, returns)?;
        }
        self.check_reply(&event, call, &reply, done)
    }

    /// Waits for the call to return.
    pub(super) fn finish_call(&mut self) -> Result<(), Stop> {
        while let Some(waiting) = &self.waiting {
            let limit = waiting.returns.saturating_add(self.tolerance);
            let event = waiting.event.clone();
            if self.host.now() >= limit {
                let Action::Call(call) = &event.action else { return Ok(()) };
                let actual = format!("not until {} s", show::seconds(limit));
                return Err(result_differs(&event, call, call.result.to_string(), actual));
            }
            self.step(&event, limit)?;
        }
        Ok(())
    }

    fn check_return_time(&self, event: &Event, call: &Call, returns: u64) -> Result<(), Stop> {
        let now = self.host.now();
        if now.abs_diff(returns) <= self.tolerance {
            return Ok(());
        }
        let difference =
            Difference { field: "return", expected: show::seconds(returns), actual: show::seconds(now) };
        Err(failed(event, vec![difference], call.to_string(), format!("returned at {}", show::seconds(now))))
    }

    fn check_reply(&mut self, event: &Event, call: &Call, reply: &Reply, done: u64) -> Result<(), Stop> {
        let (result, left) = match reply {
            Reply::Returned(result, left) => (result.saturating_add_unsigned(done), *left),
            // A write that took some bytes returns their number, and only the next one the error.
            Reply::Failed(_) if done > 0 => (i64::try_from(done).unwrap_or(i64::MAX), None),
            Reply::Failed(name) => return check_error(event, call, name),
            Reply::Waits(_) => return Ok(()),
            Reply::Unsupported => return self.left_out(event, call),
        };
        match &call.result {
            Value::Any => {}
            Value::Int(expected) if *expected == result => {}
            other => return Err(result_differs(event, call, other.to_string(), result.to_string())),
        }
        let expected = expected_out(call);
        match (expected, left) {
            (Some(expected), Some(left)) if expected != left => {
                let difference = Difference::between("value", &expected, &left);
                Err(failed(event, difference.into_iter().collect(), call.to_string(), left.to_string()))
            }
            _ => Ok(()),
        }
    }

    /// An option that the host does not have changes nothing; a call it does not have ends the run.
    fn left_out(&mut self, event: &Event, call: &Call) -> Result<(), Stop> {
        match call.name.as_str() {
            "setsockopt" => self.ignored.push(Note { line: event.line, text: call.to_string() }),
            "getsockopt" => self.unchecked.push(Note { line: event.line, text: call.to_string() }),
            _ => return Err(unsupported(event, format!("the call {call}"))),
        }
        Ok(())
    }

    /// Control data and flags that a message came with are not looked at.
    fn note_unlooked(&mut self, event: &Event, call: &Call) {
        let message = call.arguments.get(1).filter(|_| call.name == "recvmsg");
        let control = message.and_then(|message| request::member(message, "msg_control"));
        if let Some(Value::List(_)) = control {
            self.unchecked.push(Note { line: event.line, text: "msg_control".into() });
        }
    }
}

fn check_error(event: &Event, call: &Call, name: &'static str) -> Result<(), Stop> {
    let expected_failure = matches!(call.result, Value::Int(-1) | Value::Any);
    let same_name = call.errno.as_ref().is_none_or(|errno| errno == name);
    if expected_failure && same_name {
        return Ok(());
    }
    let expected = format!("{} {}", call.result, call.errno.as_deref().unwrap_or_default());
    Err(result_differs(event, call, expected.trim().to_owned(), format!("-1 {name}")))
}

/// What the script has for the value that a call leaves in its argument.
fn expected_out(call: &Call) -> Option<i64> {
    match call.name.as_str() {
        "poll" => request::poll_bits(request::member(request::poll_entry(&call.arguments)?, "revents")?),
        "getsockopt" | "ioctl" => match call.arguments.get(if call.name == "ioctl" { 2 } else { 3 })? {
            Value::List(items) => items.first().and_then(number),
            _ => None,
        },
        _ => None,
    }
}

fn result_differs(event: &Event, call: &Call, expected: String, actual: String) -> Stop {
    let shown = actual.clone();
    failed(event, vec![Difference { field: "result", expected, actual }], call.to_string(), shown)
}
