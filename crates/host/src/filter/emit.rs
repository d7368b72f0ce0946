//! Conditions to instructions.
//!
//! Jumps of classic BPF lead forward only, so a program is built from its end: where a jump leads is known when the
//! jump is made.

use super::{Error, Instruction};

/// The kernel accepts no longer program (`BPF_MAXINSNS`).
const MOST: usize = 4096;
/// Jumps of a comparison reach this far, less what may come in between.
const REACH: usize = 250;
/// What an accepting program returns: bytes to keep of a packet, more than any has.
const WHOLE: u32 = 0x4_0000;

/// `BPF_RET | BPF_K`.
pub(super) const RETURN: u16 = 0x06;
/// `BPF_JMP | BPF_JA`.
pub(super) const JUMP: u16 = 0x05;

/// A condition on a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Expression {
    Test(Test),
    And(Box<Expression>, Box<Expression>),
    Or(Box<Expression>, Box<Expression>),
    Not(Box<Expression>),
}

/// Loads a number of the packet and compares it. A load beyond the packet's end rejects the packet, whatever the rest
/// of the expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Test {
    pub(super) load: Vec<Instruction>,
    pub(super) compare: u16,
    pub(super) with: u32,
}

impl Expression {
    pub(super) fn and(self, other: Self) -> Self {
        Self::And(Box::new(self), Box::new(other))
    }

    pub(super) fn or(self, other: Self) -> Self {
        Self::Or(Box::new(self), Box::new(other))
    }

    pub(super) fn negated(self) -> Self {
        Self::Not(Box::new(self))
    }
}

/// The program that accepts what the expression holds for.
pub(super) fn program(expression: &Expression) -> Result<Vec<Instruction>, Error> {
    let plain = |code, k| Instruction { code, jt: 0, jf: 0, k };
    let mut backwards = Backwards(vec![plain(RETURN, 0), plain(RETURN, WHOLE)]);
    backwards.condition(expression, 1, 0);
    let mut program = backwards.0;
    if program.len() > MOST {
        return Err(Error(format!("too long: {} instructions, and the kernel takes {MOST}", program.len())));
    }
    program.reverse();
    Ok(program)
}

/// A program from its end; instructions are known by their distance from there.
struct Backwards(Vec<Instruction>);

impl Backwards {
    /// Puts the test of `expression` before what is there, going on at `yes` or `no`; where it begins.
    fn condition(&mut self, expression: &Expression, yes: usize, no: usize) -> usize {
        match expression {
            Expression::Not(inner) => self.condition(inner, no, yes),
            Expression::And(first, second) => {
                let second = self.condition(second, yes, no);
                self.condition(first, second, no)
            }
            Expression::Or(first, second) => {
                let second = self.condition(second, yes, no);
                self.condition(first, yes, second)
            }
            Expression::Test(test) => self.test(test, yes, no),
        }
    }

    fn test(&mut self, test: &Test, yes: usize, no: usize) -> usize {
        let (yes, no) = (self.within_reach(yes), self.within_reach(no));
        let here = self.0.len();
        // Within reach, so that both fit.
        let skip = |to: usize| (here - to - 1) as u8;
        self.0.push(Instruction { code: test.compare, jt: skip(yes), jf: skip(no), k: test.with });
        self.0.extend(test.load.iter().rev());
        self.0.len() - 1
    }

    /// `to`, or a jump to it.
    fn within_reach(&mut self, to: usize) -> usize {
        let here = self.0.len();
        if here - to < REACH {
            return to;
        }
        self.0.push(Instruction { code: JUMP, jt: 0, jf: 0, k: (here - to - 1) as u32 });
        here
    }
}
