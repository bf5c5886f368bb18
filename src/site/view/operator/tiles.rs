//! The map of the states as tiles.

use super::scale::{compact, part};
use crate::domain::us_state::UsState;

/// A tile of the map, and the next one.
pub(super) const TILE: u64 = 31;
const TILE_STEP: u64 = 33;

#[derive(Debug)]
pub(super) struct TileMap {
    pub(super) tiles: Vec<Tile>,
}

#[derive(Debug)]
pub(super) struct Tile {
    pub(super) x: u64,
    pub(super) y: u64,
    pub(super) width: u64,
    pub(super) code: &'static str,
    /// Empty where there is none, or few.
    pub(super) value: String,
    /// Which fourth of the largest it is in; 0 where it has no value.
    pub(super) level: u64,
}

impl TileMap {
    pub(super) const HEIGHT: u64 = TILE_STEP * MAP.len() as u64;
}

impl Tile {
    pub(super) const fn middle(&self) -> u64 {
        self.x + self.width / 2
    }
}

/// The states roughly where they are, a row of the map in each line; `--` for those who named none.
const MAP: [&str; 8] = [
    "AK .. .. .. .. .. .. .. .. .. ME",
    ".. .. .. .. .. .. .. .. .. VT NH",
    "WA ID MT ND MN IL WI MI NY RI MA",
    "OR NV WY SD IA IN OH PA NJ CT ..",
    "CA UT CO NE MO KY WV VA MD DE ..",
    ".. AZ NM KS AR TN NC SC DC .. ..",
    ".. .. .. OK LA MS AL GA .. .. ..",
    "HI .. .. TX .. .. .. .. FL .. ..",
];

/// A map of the states by what each has; the state '' is a tile of its own.
pub(super) fn tiles(value_of: impl Fn(&str) -> Option<u64>) -> TileMap {
    let codes = UsState::ALL.iter().map(|state| state.code()).chain([""]);
    let most = codes.filter_map(&value_of).max().unwrap_or(0);
    let tile = |(column, row): (u64, u64), width, code: &'static str, state: &str| {
        let value = value_of(state).filter(|value| *value > 0);
        Tile {
            x: column * TILE_STEP,
            y: row * TILE_STEP,
            width,
            code,
            value: value.map(compact).unwrap_or_default(),
            level: value.map_or(0, |value| (part(value, most, 4)).max(1)),
        }
    };
    let mut tiles = Vec::with_capacity(UsState::ALL.len() + 1);
    for (row, line) in (0..).zip(MAP) {
        for (column, code) in (0..).zip(line.split(' ')) {
            if UsState::from_code(code).is_some() {
                tiles.push(tile((column, row), TILE, code, code));
            }
        }
    }
    tiles.push(tile((9, 7), TILE + TILE_STEP, "no state", ""));
    TileMap { tiles }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_has_one_tile() {
        let map = tiles(|code| (code == "CA").then_some(40).or((code == "NY").then_some(1)));
        let mut codes: Vec<_> = map.tiles.iter().map(|tile| tile.code).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!((map.tiles.len(), codes.len()), (52, 52), "51 states, and those who named none");
        let level =
            |code| map.tiles.iter().find(|tile| tile.code == code).map(|tile| (tile.level, tile.value.as_str()));
        assert_eq!(level("CA"), Some((4, "40")));
        assert_eq!((level("NY"), level("TX")), (Some((1, "1")), Some((0, ""))));
        let places: std::collections::BTreeSet<_> = map.tiles.iter().map(|tile| (tile.x, tile.y)).collect();
        assert_eq!(places.len(), 52, "none lies on another");
    }
}
