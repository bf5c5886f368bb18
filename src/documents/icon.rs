//! The service's icon: for browser tabs, the MCP registry and lists of assistants.

use serde_json::{Value, json};

/// The mark at the head of every page; `icon.png` is this, rendered at 256 × 256 for clients that cannot draw SVG.
pub const SVG: &str = include_str!("../../templates/icon.svg");
pub const PNG: &[u8] = include_bytes!("../../templates/icon.png");

/// Where it is found, as the Model Context Protocol and its registry both list icons.
pub fn listed(base_url: &str) -> Value {
    json!([
        { "src": format!("{base_url}/icon.png"), "mimeType": "image/png", "sizes": ["256x256"] },
        { "src": format!("{base_url}/icon.svg"), "mimeType": "image/svg+xml", "sizes": ["any"] },
    ])
}

/// The same for browsers that ask for `/favicon.ico` whatever a page says: a PNG in the container that they expect.
pub fn ico() -> Vec<u8> {
    const HEAD: u32 = 22;
    let length = u32::try_from(PNG.len()).unwrap_or_default().to_le_bytes();
    // One picture; 0 stands for 256 pixels; 32 bits a pixel, and where it begins.
    let head = [&[0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 1, 0, 32, 0][..], &length, &HEAD.to_le_bytes()].concat();
    [&head, PNG].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ico_header_points_to_the_png() {
        let ico = ico();
        let number = |at: usize| u32::from_le_bytes(ico[at..at + 4].try_into().unwrap()) as usize;
        assert_eq!(&ico[number(18)..][..number(14)], PNG);
        assert_eq!(&ico[..6], [0, 0, 1, 0, 1, 0]);
    }
}
