//! Writing SVG: few elements, short numbers, and nobody's text taken for markup.

use std::fmt::Write as _;

use super::style;
use crate::xml::escaped;

/// A picture on its way to becoming text.
#[derive(Debug)]
pub(super) struct Svg(String);

/// How a text stands at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A rectangle; y grows downwards.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Area {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Area {
    pub(super) fn right(&self) -> f64 {
        self.x + self.width
    }

    pub(super) fn bottom(&self) -> f64 {
        self.y + self.height
    }
}

/// A text's look.
#[derive(Clone, Copy, Debug)]
pub(super) struct Type {
    pub(super) size: f64,
    pub(super) color: &'static str,
    pub(super) bold: bool,
    pub(super) anchor: Anchor,
    /// White around the letters, where they stand on marks.
    pub(super) halo: bool,
}

impl Type {
    pub(super) fn plain(size: f64, color: &'static str) -> Self {
        Self { size, color, bold: false, anchor: Anchor::Start, halo: false }
    }

    pub(super) fn anchored(self, anchor: Anchor) -> Self {
        Self { anchor, ..self }
    }
}

impl Svg {
    /// A white picture of so many pixels. `title` and `description` are for those who cannot see it.
    pub(super) fn new((width, height): (u32, u32), title: &str, description: &str) -> Self {
        let mut svg = Self(String::new());
        svg.put(&format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\" font-family=\"{}\">\n",
            style::FONT
        ));
        svg.put(&format!("<title>{}</title>\n<desc>{}</desc>\n", escaped(title), escaped(description)));
        let all = Area { x: 0.0, y: 0.0, width: f64::from(width), height: f64::from(height) };
        svg.rect(&all, style::BACKGROUND, 1.0);
        svg
    }

    /// The whole text.
    pub(super) fn finish(mut self) -> String {
        self.put("</svg>\n");
        self.0
    }

    fn put(&mut self, text: &str) {
        self.0.push_str(text);
    }

    /// A filled rectangle; `opacity` from 0 to 1.
    pub(super) fn rect(&mut self, area: &Area, color: &str, opacity: f64) {
        if area.width <= 0.0 || area.height <= 0.0 || opacity <= 0.0 {
            return;
        }
        let [x, y, width, height] = [area.x, area.y, area.width, area.height].map(fine);
        let opacity =
            if opacity < 1.0 { format!(" fill-opacity=\"{}\"", fine(opacity)) } else { String::new() };
        self.put(&format!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{color}\"{opacity}/>\n"
        ));
    }

    /// The outline of a rectangle.
    pub(super) fn outline(&mut self, area: &Area, color: &str) {
        let [x, y, width, height] = [area.x, area.y, area.width, area.height].map(fine);
        self.put(&format!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"none\" stroke=\"{color}\"/>\n"
        ));
    }

    /// Lines along `path`, which is SVG's path notation; `name` is what they show, for scripts and tests.
    pub(super) fn lines(&mut self, name: &str, path: &str, color: &str, width: f64) {
        if !path.is_empty() {
            let width = fine(width);
            self.put(&format!(
                "<path class=\"{name}\" d=\"{path}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"{width}\"/>\n"
            ));
        }
    }

    /// Fills what `path` goes around.
    pub(super) fn areas(&mut self, name: &str, path: &str, color: &str) {
        if !path.is_empty() {
            self.put(&format!("<path class=\"{name}\" d=\"{path}\" fill=\"{color}\"/>\n"));
        }
    }

    /// A circle's outline, filled white.
    pub(super) fn ring(&mut self, (x, y): (f64, f64), radius: f64, color: &str) {
        let [x, y, radius] = [x, y, radius].map(fine);
        self.put(&format!(
            "<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" fill=\"#fff\" fill-opacity=\"0.6\" stroke=\"{color}\" \
             stroke-width=\"1.2\"/>\n"
        ));
    }

    /// One line of text, its baseline at (x, y).
    pub(super) fn text(&mut self, (x, y): (f64, f64), text: &str, look: Type) {
        let [x, y, size] = [x, y, look.size].map(fine);
        let anchor = match look.anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let weight = if look.bold { " font-weight=\"bold\"" } else { "" };
        let halo = if look.halo {
            " stroke=\"#fff\" stroke-width=\"3\" stroke-linejoin=\"round\" paint-order=\"stroke\""
        } else {
            ""
        };
        let (color, text) = (look.color, escaped(text));
        self.put(&format!(
            "<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\" fill=\"{color}\"{anchor}{weight}{halo}>{text}</text>\n"
        ));
    }

    /// One line of text that reads upwards.
    pub(super) fn upright(&mut self, (x, y): (f64, f64), text: &str, look: Type) {
        let [x, y, size] = [x, y, look.size].map(fine);
        let (color, text) = (look.color, escaped(text));
        self.put(&format!(
            "<text transform=\"translate({x} {y}) rotate(-90)\" font-size=\"{size}\" fill=\"{color}\" \
             text-anchor=\"middle\">{text}</text>\n"
        ));
    }

    /// What `draw` draws, cut at the edges of `area`. Each `number` may be used once.
    pub(super) fn clipped(&mut self, number: usize, area: &Area, draw: impl FnOnce(&mut Self)) {
        let [x, y, width, height] = [area.x, area.y, area.width, area.height].map(fine);
        self.put(&format!(
            "<clipPath id=\"p{number}\"><rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/></clipPath>\n\
             <g clip-path=\"url(#p{number})\">\n"
        ));
        draw(self);
        self.put("</g>\n");
    }
}

/// A coordinate to a hundredth of a pixel, without zeros at its end.
pub(super) fn fine(value: f64) -> String {
    let mut text = format!("{value:.2}");
    let kept = text.trim_end_matches('0').trim_end_matches('.').len();
    text.truncate(kept);
    if text == "-0" { "0".to_owned() } else { text }
}

/// Appends a path's command with a coordinate in tenths of a pixel.
pub(super) fn command(path: &mut String, letter: char, tenths: i64) {
    let sign = if tenths < 0 { "-" } else { "" };
    let (whole, tenth) = (tenths.unsigned_abs() / 10, tenths.unsigned_abs() % 10);
    // Writing to a String cannot fail.
    let _ = match tenth {
        0 => write!(path, "{letter}{sign}{whole}"),
        _ => write!(path, "{letter}{sign}{whole}.{tenth}"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!([0.0, -0.001, 12.5, 3.456, -7.0].map(fine), ["0", "0", "12.5", "3.46", "-7"]);
        let mut path = String::new();
        [('M', 120), ('V', 5), ('H', -13)]
            .into_iter()
            .for_each(|(letter, at)| command(&mut path, letter, at));
        assert_eq!(path, "M12V0.5H-1.3");
    }
}
