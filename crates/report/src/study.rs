//! What `mmtwin reproduce` answers with: published and twin figures, effect by effect. Field names are fixed.

use compare::{Better, Comparison, Direction, Interval, Published, direction, effect_pct};
use serde::{Deserialize, Serialize};

/// The document of `reproduce --json`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ReproduceReport {
    /// mmtwin's version.
    pub version: String,
    /// The studies that were run.
    pub studies: Vec<StudyReport>,
}

/// One study.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StudyReport {
    /// Its name.
    pub study: String,
    /// What it is about.
    pub title: String,
    /// Whether it ran at the reduced scale of `--quick`.
    pub quick: bool,
    /// In which scale it ran, and what was set otherwise than the study says.
    pub scale: String,
    /// Seed.
    pub seed: u64,
    /// Wall time of all its runs, in seconds; left out where the same inputs must give the same bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_s: Option<f64>,
    /// Virtual time of all its runs, in seconds.
    pub virtual_s: f64,
    /// Iterations of each configuration.
    pub iterations: u32,
    /// Page frames of the machine that took the most bytes a frame.
    pub frames: u64,
    /// Host bytes of state per page frame of that machine, everything counted, at the peak.
    pub bytes_per_frame: f64,
    /// Runs that were interrupted or failed; the rows are made of the others.
    pub runs_missing: usize,
    /// What the models leave out.
    pub omitted: Vec<String>,
    /// What is known of the study, and of how it was run.
    pub notes: Vec<String>,
    /// How much its results depend on what is not published.
    pub sensitivity: Vec<String>,
    /// Where it ran: the configurations, in the order of the study.
    pub cases: Vec<CaseReport>,
    /// One row per published effect.
    pub rows: Vec<Row>,
}

/// One configuration of a study.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CaseReport {
    /// Its name in the published figures.
    pub config: String,
    /// Its name in words.
    pub title: String,
    /// The machine that ran.
    pub machine: String,
    /// Its CPUs.
    pub cpus: u32,
    /// Its memory, in bytes.
    pub memory_bytes: u64,
}

/// One effect: a metric of a variant against its baseline, in one configuration.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Row {
    /// The published table that it stands in.
    pub table: String,
    /// Machine and settings.
    pub config: String,
    /// The metric, as published.
    pub metric: String,
    /// Unit of the figures.
    pub unit: String,
    /// Which way is better.
    pub better: Better,
    /// Name of the baseline kernel.
    pub baseline: String,
    /// Name of the variant kernel.
    pub variant: String,
    /// The publication's figures.
    pub published: Effect,
    /// The twin's figures.
    pub twin: TwinEffect,
    /// How far the twin's effect is from the published one, in percentage points.
    pub difference_points: Option<f64>,
    /// Whether the effects point the same way.
    pub direction: Direction,
}

/// Published figures of an effect, in the row's unit.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Effect {
    /// The baseline's figure.
    pub baseline: Option<f64>,
    /// The variant's figure.
    pub variant: Option<f64>,
    /// (variant - baseline) / baseline * 100.
    pub effect_pct: Option<f64>,
}

impl Effect {
    /// The effect of two published figures, either of which may be missing.
    pub fn of(baseline: Option<f64>, variant: Option<f64>) -> Effect {
        let effect_pct = baseline.zip(variant).and_then(|(b, v)| effect_pct(b, v));
        Effect { baseline, variant, effect_pct }
    }
}

/// The twin's figures of an effect, in the row's unit.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct TwinEffect {
    /// Mean of the baseline's runs.
    pub baseline: Option<f64>,
    /// Mean of the variant's runs.
    pub variant: Option<f64>,
    /// (variant - baseline) / baseline * 100.
    pub effect_pct: Option<f64>,
    /// 95 % interval of the effect, in percent.
    pub ci95_pct: Option<Interval>,
}

impl TwinEffect {
    /// The effect that the twin's samples show.
    pub fn of(comparison: &Comparison) -> TwinEffect {
        TwinEffect {
            baseline: comparison.baseline.mean,
            variant: comparison.variant.mean,
            effect_pct: comparison.effect_pct,
            ci95_pct: comparison.effect_ci95_pct,
        }
    }
}

impl Row {
    /// Sets the twin's figures from its samples, and the direction from both effects.
    ///
    /// `significant`: whether the publication marked its effect as significant.
    pub fn set_twin(&mut self, baseline: &[f64], variant: &[f64], significant: bool) {
        self.twin = TwinEffect::of(&Comparison::of(baseline, variant, self.better));
        self.difference_points = self.twin.effect_pct.zip(self.published.effect_pct).map(|(twin, known)| twin - known);
        let published = Published { effect_pct: self.published.effect_pct, significant };
        self.direction = direction(published, self.twin.effect_pct);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A row of study 0 with two twin runs on each side.
    pub(crate) fn row() -> Row {
        let mut row = Row {
            table: "extfrag".into(),
            config: "skylake1s default-thp".into(),
            metric: "extfrag events".into(),
            unit: "events".into(),
            better: Better::Lower,
            baseline: "4.20-rc3".into(),
            variant: "boost".into(),
            published: Effect::of(Some(200.0), Some(50.0)),
            twin: TwinEffect::default(),
            difference_points: None,
            direction: Direction::None,
        };
        row.set_twin(&[100.0, 100.0], &[20.0, 20.0], false);
        row
    }

    /// A report of these rows.
    pub(crate) fn report(rows: Vec<Row>) -> StudyReport {
        let case = |config: &str, title: &str| CaseReport {
            config: config.into(),
            title: title.into(),
            machine: "m".into(),
            cpus: 8,
            memory_bytes: 4 << 30,
        };
        StudyReport {
            study: "watermark-boost".into(),
            title: "A title".into(),
            quick: true,
            scale: "quick".into(),
            seed: 1,
            wall_s: None,
            virtual_s: 60.0,
            iterations: 2,
            frames: 1024,
            bytes_per_frame: 24.0,
            runs_missing: 0,
            omitted: Vec::new(),
            notes: Vec::new(),
            sensitivity: Vec::new(),
            cases: vec![case("skylake1s default-thp", "Skylake"), case("haswell2s", "Haswell")],
            rows,
        }
    }

    #[test]
    fn json_has_the_fields_of_the_design() {
        let report =
            StudyReport { runs_missing: 1, omitted: vec!["psi".into()], cases: Vec::new(), ..report(vec![row()]) };
        let expected = concat!(
            r#"{"study":"watermark-boost","title":"A title","quick":true,"scale":"quick","seed":1,"virtual_s":60.0,"#,
            r#""iterations":2,"frames":1024,"bytes_per_frame":24.0,"runs_missing":1,"omitted":["psi"],"notes":[],"#,
            r#""sensitivity":[],"cases":[],"rows":[{"table":"extfrag","#,
            r#""config":"skylake1s default-thp","metric":"extfrag events","unit":"events","better":"lower","#,
            r#""baseline":"4.20-rc3","variant":"boost","#,
            r#""published":{"baseline":200.0,"variant":50.0,"effect_pct":-75.0},"#,
            r#""twin":{"baseline":100.0,"variant":20.0,"effect_pct":-80.0,"ci95_pct":[-80.0,-80.0]},"#,
            r#""difference_points":-5.0,"direction":"agrees"}]}"#,
        );
        let text = serde_json::to_string(&report).unwrap();
        assert_eq!(text, expected);
        assert_eq!(serde_json::from_str::<StudyReport>(&text).unwrap(), report);
    }

    #[test]
    fn wall_time_stands_in_the_document_only_if_it_is_asked_for() {
        let asked = StudyReport { wall_s: Some(1.5), ..report(Vec::new()) };
        assert_eq!(serde_json::to_value(&asked).unwrap()["wall_s"], 1.5);
        assert!(serde_json::to_value(report(Vec::new())).unwrap().get("wall_s").is_none());
    }

    #[test]
    fn what_does_not_exist_is_null() {
        let mut row = row();
        row.published = Effect::of(Some(0.0), Some(5.0));
        row.set_twin(&[1.0], &[], false);
        let json = serde_json::to_value(&row).unwrap();
        assert!(json["published"]["effect_pct"].is_null());
        assert!(json["twin"]["variant"].is_null() && json["twin"]["ci95_pct"].is_null());
        assert_eq!(json["direction"], "none");
        assert_eq!(row.difference_points, None);
    }

    #[test]
    fn the_difference_is_in_points() {
        // -80 % against -75 %.
        assert_eq!(row().difference_points, Some(-5.0));
    }
}
