//! Pictures of the zones over time, for runs that record what compaction does.

use report::{ZoneRow, zone_picture};
use twin::{BlockUse, RunOutcome, ZoneMap};

/// Moments in the picture that is printed.
const ROWS_PRINTED: usize = 40;
/// Columns of the picture that is kept.
const KEPT_WIDTH: u16 = 120;

/// How to read a picture.
const LEGEND: &str = "' ' free  '.' only movable pages  'x' a page that stays among movable ones  '#' kernel memory  \
                      '@' one allocated block\n\
                      '>' '<' where the migrate and the free scanner go on  '^' pivot\n";

/// The picture that is kept: every moment.
pub(super) fn kept(outcome: &RunOutcome) -> Option<String> {
    picture(outcome, usize::MAX, KEPT_WIDTH)
}

/// The picture that is printed: some moments, evenly spread.
pub(super) fn printed(outcome: &RunOutcome, width: u16) -> Option<String> {
    picture(outcome, ROWS_PRINTED, width)
}

fn picture(outcome: &RunOutcome, rows_max: usize, width: u16) -> Option<String> {
    let maps = &outcome.zone_maps;
    let zones = &maps.first()?.1;
    let step = maps.len().div_ceil(rows_max);
    let mut out = String::from(LEGEND);
    for (number, zone) in zones.iter().enumerate() {
        let row = |(at, zones): &(units::Nanos, Vec<ZoneMap>)| row(at.as_secs_f64(), &zones[number]);
        let rows: Vec<ZoneRow> = maps.iter().step_by(step).map(row).collect();
        let title = format!("node {}, zone {}", zone.node.0, zone.kind.name());
        out.push_str(&zone_picture(&title, &rows, width));
    }
    Some(out)
}

fn row(at_s: f64, map: &ZoneMap) -> ZoneRow {
    let ZoneMap { migrate, free, pivot, .. } = *map;
    ZoneRow { at_s, blocks: map.blocks.iter().map(|block| letter(*block)).collect(), migrate, free, pivot }
}

fn letter(block: BlockUse) -> char {
    match block {
        BlockUse::Free => ' ',
        BlockUse::Movable => '.',
        BlockUse::Mixed => 'x',
        BlockUse::Stays => '#',
        BlockUse::Taken => '@',
    }
}
