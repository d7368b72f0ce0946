//! A picture's SVG as a PNG, with a font of its own: a bare machine has none.

use std::sync::{Arc, OnceLock};

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::Database;
use resvg::usvg::{Options, Tree};

/// The family that [`dejavu`] holds.
const FAMILY: &str = "DejaVu Sans";

/// Why there is no PNG.
#[derive(Debug)]
pub enum PngError {
    /// The text is no SVG that can be drawn.
    Svg(String),
    /// The picture has no pixels, or more than fit into memory.
    Size,
    /// It cannot be compressed.
    Encoding(String),
}

impl std::fmt::Display for PngError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Svg(why) => write!(f, "the picture cannot be drawn: {why}"),
            Self::Size => f.write_str("the picture is too large"),
            Self::Encoding(why) => write!(f, "the picture cannot be written as PNG: {why}"),
        }
    }
}

impl std::error::Error for PngError {}

/// Draws an SVG that [`super::svg()`] made, pixel for pixel.
///
/// # Errors
///
/// None for such an SVG of a size that fits into memory.
pub fn png(svg: &str) -> Result<Vec<u8>, PngError> {
    let options = Options { fontdb: fonts(), font_family: FAMILY.to_owned(), ..Options::default() };
    let tree = Tree::from_str(svg, &options).map_err(|error| PngError::Svg(error.to_string()))?;
    let size = tree.size().to_int_size();
    let mut pixels = Pixmap::new(size.width(), size.height()).ok_or(PngError::Size)?;
    resvg::render(&tree, Transform::identity(), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| PngError::Encoding(error.to_string()))
}

/// `DejaVu Sans` (Bitstream Vera licence), which reads well in small sizes and knows most scripts of host names.
fn fonts() -> Arc<Database> {
    static FONTS: OnceLock<Arc<Database>> = OnceLock::new();
    let load = || {
        let mut fonts = Database::new();
        fonts.load_font_data(dejavu::sans::regular().to_vec());
        fonts.load_font_data(dejavu::sans::bold().to_vec());
        Arc::new(fonts)
    };
    Arc::clone(FONTS.get_or_init(load))
}
