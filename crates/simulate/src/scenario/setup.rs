//! Keys of a file to what the simulator runs.

use std::time::Duration;

use super::error::closest;
use super::file::{Ecn, Host, Lane, Link, Part};
use super::{ScenarioError, programs};
use crate::link::{Direction, Ends, Queue, Settings};
use crate::tcp::{Buffer, EcnUse, SocketOption, Stack, eras};
use crate::world::{Program, Reader, Setup};

/// The clock of timestamps that are switched on: a tick a millisecond, as Linux and Windows have it.
const TIMESTAMP_TICK: Duration = Duration::from_millis(1);

pub(super) fn setup(part: &Part, seed: u64) -> Result<Setup, ScenarioError> {
    let mut client_program = program(&part.client);
    let mut server_program = program(&part.server);
    match &part.traffic {
        Some(traffic) => {
            if part.client.steps.is_some() || part.server.steps.is_some() {
                return Err(ScenarioError::about("[traffic] and steps exclude each other"));
            }
            [client_program.steps, server_program.steps] = programs::steps(traffic)?;
        }
        None if client_program.steps.is_empty() && server_program.steps.is_empty() => {
            return Err(ScenarioError::about(
                "no traffic: say [traffic] with download = \"100 KB\", or steps = [\"write 100 KB\"] under [server]",
            ));
        }
        None => {}
    }
    Ok(Setup {
        client: stack("client", &part.client)?,
        server: stack("server", &part.server)?,
        client_program,
        server_program,
        ends: ends(&part.link)?,
        seed,
    })
}

fn stack(side: &str, host: &Host) -> Result<Stack, ScenarioError> {
    let name = host.stack.as_deref().unwrap_or("linux-6");
    let known = || eras::ERAS.iter().map(|era| era.name);
    let mut stack = eras::named(name).ok_or_else(|| {
        let names: Vec<_> = known().collect();
        let like = closest(name, known()).map_or(String::new(), |name| format!(" Is it {name}?"));
        ScenarioError::about(format!("{side}.stack: no era is called {name}: {}.{like}", names.join(", ")))
    })?;
    check(side, host)?;
    change_stack(host, &mut stack);
    change_sender(host, &mut stack);
    change_receiver(host, &mut stack);
    Ok(stack)
}

/// Refuses numbers that no TCP has: fields of the header are that long, and windows beyond reason take memory.
fn check(side: &str, host: &Host) -> Result<(), ScenarioError> {
    let numbers = [
        ("mss", host.mss.map(u32::from), 64..=9_000),
        ("window-scale", host.window_scale.map(u32::from), 0..=14),
        ("initial-window", host.initial_window, 1..=10_000),
    ];
    for (key, number, range) in numbers {
        if number.is_some_and(|number| !range.contains(&number)) {
            let (least, most) = range.into_inner();
            return Err(ScenarioError::about(format!("{side}.{key}: from {least} to {most}")));
        }
    }
    Ok(())
}

/// Sets what is given.
fn set<T: Clone>(to: &mut T, given: &Option<T>) {
    if let Some(value) = given {
        *to = value.clone();
    }
}

fn change_stack(host: &Host, stack: &mut Stack) {
    set(&mut stack.mss, &host.mss);
    set(&mut stack.sack, &host.sack);
    set(&mut stack.window_scale, &host.window_scale.map(Some));
    if let Some(on) = host.timestamps {
        stack.timestamps = on.then(|| stack.timestamps.unwrap_or(TIMESTAMP_TICK));
    }
    if let Some(ecn) = host.ecn {
        stack.ecn = match ecn {
            Ecn::Off => None,
            Ecn::Accepts => Some(EcnUse::Accepts),
            Ecn::Asks => Some(EcnUse::Asks),
        };
    }
}

fn change_sender(host: &Host, stack: &mut Stack) {
    let sender = &mut stack.sender;
    set(&mut sender.congestion, &host.congestion.map(Into::into));
    set(&mut sender.repair, &host.repair);
    set(&mut sender.proportional_rate_reduction, &host.proportional_rate_reduction);
    set(&mut sender.new_data_in_recovery, &host.new_data_in_recovery);
    set(&mut sender.limited_transmit, &host.limited_transmit);
    set(&mut sender.rack, &host.rack);
    set(&mut sender.tail_loss_probe, &host.tail_loss_probe);
    set(&mut sender.undo, &host.undo);
    set(&mut sender.initial_window, &host.initial_window);
    set(&mut sender.idle_restart, &host.idle_restart);
    set(&mut sender.nagle, &host.nagle);
    set(&mut sender.timeout.min, &host.shortest_timeout.map(|time| time.0));
    set(&mut sender.send_buffer, &host.send_buffer.map(|bytes| Some(bytes.0)));
}

fn change_receiver(host: &Host, stack: &mut Stack) {
    let receiver = &mut stack.receiver;
    set(&mut receiver.delayed_ack, &host.delayed_ack.map(|delay| delay.0));
    set(&mut receiver.hole_filled, &host.hole_filled);
    set(&mut receiver.buffer, &host.receive_buffer.map(|bytes| Buffer::Fixed(bytes.0)));
}

fn program(host: &Host) -> Program {
    let options = [
        host.nodelay.map(SocketOption::NoDelay),
        host.cork.map(SocketOption::Cork),
        host.quickack.map(SocketOption::QuickAck),
    ];
    let time = |time: Option<super::quantity::Time>| time.map_or(Duration::ZERO, |time| time.0);
    Program {
        options: options.into_iter().flatten().collect(),
        reader: Reader {
            wakes_after: time(host.reads_after),
            at_most: host.reads_at_most.map_or(0, |bytes| bytes.0),
            pause: time(host.read_pause),
            not_before: time(host.reads_not_before),
            ..Reader::default()
        },
        steps: host.steps.iter().flatten().map(|line| line.0).collect(),
    }
}

fn ends(link: &Link) -> Result<Ends, ScenarioError> {
    let lane = |direction: Direction, own: &Option<Lane>| {
        let both = both_ways(link);
        settings(direction, &own.as_ref().map_or(both.clone(), |own| own.over(&both)))
    };
    Ok(Ends { up: lane(Direction::Up, &link.up)?, down: lane(Direction::Down, &link.down)? })
}

/// What `[link]` says of each direction.
fn both_ways(link: &Link) -> Lane {
    Lane {
        delay: link.round_trip.map(|time| super::quantity::Time(time.0 / 2)),
        rate: link.rate,
        queue: link.queue,
        mark_above: link.mark_above,
        jitter: link.jitter,
        loss: link.loss,
        reorder: link.reorder,
        reorder_by: link.reorder_by,
        duplicate: link.duplicate,
        drop: link.drop.clone(),
    }
}

/// One direction; refuses what would do nothing, since somebody expects it to.
fn settings(direction: Direction, lane: &Lane) -> Result<Settings, ScenarioError> {
    let settings = Settings {
        delay: lane.delay.map_or(Duration::ZERO, |time| time.0),
        jitter: lane.jitter.map_or(Duration::ZERO, |time| time.0),
        rate: lane.rate.map(|rate| rate.0),
        queue: lane.queue.map_or(Queue::Unlimited, |queue| queue.0),
        loss: lane.loss.map_or(0.0, |share| share.0),
        drops: lane.drop.iter().flatten().map(|drop| drop.0).collect(),
        reorder: lane.reorder.map_or(0.0, |share| share.0),
        reorder_by: lane.reorder_by.map_or(Duration::ZERO, |time| time.0),
        duplicate: lane.duplicate.map_or(0.0, |share| share.0),
        mark_above: lane.mark_above,
        hold_acks: None,
    };
    let way = match direction {
        Direction::Up => "link.up",
        Direction::Down => "link.down",
    };
    let idle = [
        (settings.rate.is_none() && settings.queue != Queue::Unlimited, "queue needs rate: no packet waits"),
        (settings.rate.is_none() && settings.mark_above.is_some(), "mark-above needs rate: no packet waits"),
        (settings.reorder > 0.0 && settings.reorder_by.is_zero(), "reorder needs reorder-by"),
        (settings.reorder == 0.0 && !settings.reorder_by.is_zero(), "reorder-by needs reorder"),
    ];
    match idle.into_iter().find(|(is_so, _)| *is_so) {
        Some((_, what)) => Err(ScenarioError::about(format!("{way}: {what}"))),
        None => Ok(settings),
    }
}
