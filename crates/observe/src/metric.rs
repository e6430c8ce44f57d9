//! A metric: what a run is judged by, with its samples.

use compare::{Better, Interval, Summary, mean, mean_ci95};
use serde::{Deserialize, Serialize};

use crate::metric_def;

/// Named samples with their unit and better-direction. In JSON it also carries the mean and its 95 % interval.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(into = "MetricJson", from = "MetricJson")]
pub struct Metric {
    /// A name of the registry, with what tells several of a kind apart after a slash: `fault_huge_us/4`.
    pub name: String,
    /// Unit of the samples: `us`, `pages/s`, `%`, ...
    pub unit: String,
    /// Which way is better.
    pub better: Better,
    /// The values, in the order in which they were measured.
    pub samples: Vec<f64>,
}

impl Metric {
    /// A metric of the registry; one that the registry does not have gets no unit and no direction.
    pub fn new(name: &str, samples: Vec<f64>) -> Metric {
        let (unit, better) = metric_def(name).map_or(("", Better::None), |def| (def.unit, def.better));
        Metric { name: name.to_owned(), unit: unit.to_owned(), better, samples }
    }

    /// Mean, spread and interval of the samples.
    pub fn summary(&self) -> Summary {
        Summary::of(&self.samples)
    }
}

/// The JSON of a metric. What is computed is written and, being computed, not read.
#[derive(Serialize, Deserialize)]
struct MetricJson {
    name: String,
    unit: String,
    better: Better,
    samples: Vec<f64>,
    #[serde(skip_deserializing)]
    mean: Option<f64>,
    #[serde(skip_deserializing)]
    ci95: Option<Interval>,
}

impl From<Metric> for MetricJson {
    fn from(metric: Metric) -> MetricJson {
        let Metric { name, unit, better, samples } = metric;
        let (mean, ci95) = (mean(&samples), mean_ci95(&samples));
        MetricJson { name, unit, better, samples, mean, ci95 }
    }
}

impl From<MetricJson> for Metric {
    fn from(json: MetricJson) -> Metric {
        let MetricJson { name, unit, better, samples, .. } = json;
        Metric { name, unit, better, samples }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_the_fields_of_the_design() {
        let metric = Metric::new("files_per_s", vec![30.0, 30.0]);
        let text = serde_json::to_string(&metric).unwrap();
        let expected = r#"{"name":"files_per_s","unit":"files/s","better":"higher","samples":[30.0,30.0],"mean":30.0,"ci95":[30.0,30.0]}"#;
        assert_eq!(text, expected);
        assert_eq!(serde_json::from_str::<Metric>(&text).unwrap(), metric);
    }

    #[test]
    fn one_sample_has_no_interval_and_an_unknown_name_no_direction() {
        let metric = Metric::new("something_else", vec![1.0]);
        assert_eq!((metric.unit.as_str(), metric.better), ("", Better::None));
        assert!(serde_json::to_string(&metric).unwrap().ends_with(r#""mean":1.0,"ci95":null}"#));
    }
}
