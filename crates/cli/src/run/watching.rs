//! Which of the two recorders watches a command.

use std::io;
use std::process::Command;

use anyhow::{Context, Result, bail};
use tcpwhy_host::calls::{Recorder, Tracer};
use tcpwhy_wire::calls::Recording;

use super::{Args, Cure, UNTRACED, program};

/// Who records the command.
pub(super) enum Watching {
    /// A library in it; why that will see nothing, if that is known.
    Inside(Recorder, Option<String>),
    /// The kernel.
    Kernel(Tracer),
}

impl Watching {
    /// Prepares it for the command, which is then to be started by the same thread.
    pub(super) fn begin(args: &Args, cure: Option<Cure>, command: &mut Command) -> Result<Self> {
        let program = command.get_program();
        let path = program::find(program).unwrap_or_default();
        let mut unseen = program::why_unseen(program);
        if let (Some(cure), Some(why)) = (args.fix, &unseen) {
            bail!("--fix {} cannot be tried: {why}", cure.name());
        }
        if args.kernel {
            return Ok(Self::Kernel(Tracer::of_command(&path, !args.no_stacks).context(UNTRACED)?));
        }
        if let Some(why) = &mut unseen {
            match Tracer::of_command(&path, !args.no_stacks) {
                Ok(tracer) => return Ok(Self::Kernel(tracer)),
                Err(reason) => {
                    why.push_str(&format!(" The kernel's trace events would show them: {reason}."));
                }
            }
        }
        let recorder = Recorder::new().context("cannot prepare the recording")?;
        recorder
            .watch(command, !args.no_stacks, cure.map(Cure::fix))
            .context("cannot prepare the recording")?;
        Ok(Self::Inside(recorder, unseen))
    }

    /// What was recorded.
    pub(super) fn finish(&mut self) -> io::Result<Recording> {
        match self {
            Self::Inside(recorder, unseen) => {
                let mut recording = recorder.recording()?;
                recording.about.unseen = unseen.take().unwrap_or_default();
                Ok(recording)
            }
            Self::Kernel(tracer) => tracer.finish(),
        }
    }
}
