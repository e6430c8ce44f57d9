//! A zone over time, drawn in letters: a line for each moment, from the zone's first pageblock to its last.

/// A zone at one moment, with a letter for each pageblock.
#[derive(Clone, PartialEq, Debug)]
pub struct ZoneRow {
    /// When, in virtual seconds.
    pub at_s: f64,
    /// What each pageblock holds.
    pub blocks: Vec<char>,
    /// Pageblock where the migrate scanner goes on, from 0.
    pub migrate: Option<u32>,
    /// The same for the free scanner.
    pub free: Option<u32>,
    /// The pivot, where scanners have one.
    pub pivot: Option<u32>,
}

/// What stands for the migrate scanner, the free scanner and the pivot.
const MIGRATE: char = '>';
const FREE: char = '<';
const PIVOT: char = '^';
/// Columns of the time and the two ends of the zone.
const FRAME: usize = 11;

/// The picture of a zone, `width` terminal columns wide at most. Each cell stands for as many pageblocks as it must, and
/// shows what most of them hold.
pub fn zone_picture(title: &str, rows: &[ZoneRow], width: u16) -> String {
    let blocks = rows.iter().map(|row| row.blocks.len()).max().unwrap_or(0);
    let cells = usize::from(width).saturating_sub(FRAME).clamp(1, blocks.max(1));
    let per_cell = blocks.div_ceil(cells).max(1);
    let mut out = format!("{title}: {blocks} pageblocks, {per_cell} in a cell\n");
    for row in rows {
        let cells: String = cells_of(row, per_cell).into_iter().collect();
        out.push_str(&format!("{:>7.0} s|{cells}|\n", row.at_s));
    }
    out
}

fn cells_of(row: &ZoneRow, per_cell: usize) -> Vec<char> {
    let mut cells: Vec<char> = row.blocks.chunks(per_cell).map(most_frequent).collect();
    // The later hides the earlier where they share a cell.
    for (place, letter) in [(row.pivot, PIVOT), (row.free, FREE), (row.migrate, MIGRATE)] {
        let cell = place.and_then(|block| cells.get_mut(block as usize / per_cell));
        if let Some(cell) = cell {
            *cell = letter;
        }
    }
    cells
}

/// The letter that stands there most often; of several, the first.
fn most_frequent(letters: &[char]) -> char {
    let count = |letter: char| letters.iter().filter(|other| **other == letter).count();
    let more = |best: char, letter: &char| if count(*letter) > count(best) { *letter } else { best };
    letters.iter().skip(1).fold(letters.first().copied().unwrap_or(' '), more)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(blocks: &str, [migrate, free, pivot]: [Option<u32>; 3]) -> ZoneRow {
        ZoneRow { at_s: 12.4, blocks: blocks.chars().collect(), migrate, free, pivot }
    }

    #[test]
    fn blocks_that_fit_are_drawn_one_by_one() {
        let rows = [row("..x#..", [Some(1), Some(5), None]), row("....xx", [None; 3])];
        let expected = "Normal: 6 pageblocks, 1 in a cell\n     12 s|.>x#.<|\n     12 s|....xx|\n";
        assert_eq!(zone_picture("Normal", &rows, 80), expected);
    }

    #[test]
    fn a_cell_shows_what_most_of_its_blocks_hold() {
        // 6 blocks in 2 cells: 3 in each.
        let rows = [row(".xxx##", [None; 3]), row("......", [Some(3), Some(3), Some(0)])];
        let picture = zone_picture("Z", &rows, FRAME as u16 + 2);
        assert_eq!(picture, "Z: 6 pageblocks, 3 in a cell\n     12 s|x#|\n     12 s|^>|\n");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let rows = [row(&".".repeat(1376), [None; 3])];
        for width in [20u16, 80, 120] {
            let picture = zone_picture("Z", &rows, width);
            assert!(picture.lines().skip(1).all(|line| line.chars().count() <= usize::from(width)), "{picture}");
        }
    }
}
