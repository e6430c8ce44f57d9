//! `mmtwin list`: what can be named elsewhere.

use observe::{METRICS, is_gauge, vmstat_names};
use profile::{KERNELS, Kernel, MACHINES, Machine, STUDIES, Study};
use report::list_table;
use rules::{Era, TUNABLES, Tunables};
use serde_json::{Value, json};
use workloads::WORKLOADS;

use crate::args::{ListArgs, Listed};
use crate::failure::Failure;
use crate::output;

/// A list: its heads, and its rows with the fields of these names.
struct List {
    key: &'static str,
    heads: &'static [&'static str],
    rows: Vec<Value>,
}

pub(crate) fn list(args: &ListArgs) -> Result<(), Failure> {
    let list = match args.what {
        Listed::Workloads => workloads(),
        Listed::Kernels => kernels()?,
        Listed::Machines => machines()?,
        Listed::Studies => studies()?,
        Listed::Tunables => tunables(),
        Listed::Counters => counters(),
    };
    if args.json {
        return output::print_json(&json!({ "version": env!("CARGO_PKG_VERSION"), list.key: list.rows }));
    }
    let row = |row: &Value| list.heads.iter().map(|head| cell(&row[*head])).collect();
    let rows: Vec<Vec<String>> = list.rows.iter().map(row).collect();
    output::print(&list_table(list.heads, &rows, output::width()))
}

/// A field as a table shows it.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.trim().replace('\n', " "),
        Value::Array(items) => items.iter().map(item).collect::<Vec<_>>().join("\n"),
        other => other.to_string(),
    }
}

/// One of several in a field: a parameter with its default and meaning, or a word.
fn item(value: &Value) -> String {
    match (&value["name"], &value["default"], &value["doc"]) {
        (Value::String(name), Value::String(default), Value::String(doc)) => format!("{name}={default}: {doc}"),
        _ => cell(value),
    }
}

fn workloads() -> List {
    let param = |p: &workloads::Param| json!({ "name": p.name, "default": p.default, "doc": p.doc });
    let row = |w: &workloads::WorkloadSpec| {
        let params: Vec<Value> = w.params.iter().map(param).collect();
        json!({ "name": w.name, "doc": w.doc, "params": params })
    };
    List { key: "workloads", heads: &["name", "doc", "params"], rows: WORKLOADS.iter().map(row).collect() }
}

fn kernels() -> Result<List, Failure> {
    let mut rows = Vec::new();
    for (name, _) in KERNELS {
        let kernel = Kernel::load(name)?;
        rows.push(json!({ "name": name, "description": kernel.description, "rules": kernel.rules }));
    }
    Ok(List { key: "kernels", heads: &["name", "description"], rows })
}

fn machines() -> Result<List, Failure> {
    let mut rows = Vec::new();
    for (name, _) in MACHINES {
        let machine = Machine::load(name)?;
        rows.push(json!({
            "name": name,
            "cpus": machine.cpus.count.get_ref(),
            "nodes": machine.nodes.len(),
            "memory_mib": machine.memory().0 >> 20,
            "description": machine.description,
        }));
    }
    Ok(List { key: "machines", heads: &["name", "cpus", "nodes", "memory_mib", "description"], rows })
}

fn studies() -> Result<List, Failure> {
    let mut rows = Vec::new();
    for (name, _) in STUDIES {
        let study = Study::load(name)?;
        let kernels: Vec<&String> = study.kernels.keys().collect();
        let cases: Vec<&String> = study.cases.iter().map(|case| &case.title).collect();
        rows.push(json!({
            "name": name,
            "title": study.title,
            "workload": study.workload.get_ref(),
            "kernels": kernels,
            "cases": cases,
            "iterations": study.iterations,
        }));
    }
    Ok(List { key: "studies", heads: &["name", "title", "workload", "kernels", "cases", "iterations"], rows })
}

fn tunables() -> List {
    let defaults = Tunables::default();
    let row = |t: &rules::Tunable| {
        let default = (t.get)(&defaults);
        json!({ "name": t.name, "default": default, "range": t.range, "unit": t.unit, "doc": t.doc.trim() })
    };
    let heads = &["name", "default", "range", "unit", "doc"];
    List { key: "tunables", heads, rows: TUNABLES.iter().map(row).collect() }
}

/// Counters of `/proc/vmstat` with the kernels that print them, then the metrics of a run.
fn counters() -> List {
    let mut names: Vec<&str> = Vec::new();
    for era in Era::ALL.into_iter().rev() {
        let gone: Vec<&str> = vmstat_names(era).filter(|name| !names.contains(name)).collect();
        names.extend(gone);
    }
    let counter = |name: &&str| {
        let prints = |era: &Era| vmstat_names(*era).any(|printed| printed == *name);
        let eras: Vec<&str> = Era::ALL.into_iter().filter(prints).map(Era::name).collect();
        let kind = if is_gauge(name) { "gauge" } else { "counter" };
        json!({ "name": name, "kind": kind, "kernels": eras, "unit": null, "doc": null })
    };
    let metric = |m: &observe::MetricDef| json!({ "name": m.name, "kind": "metric", "kernels": [], "unit": m.unit, "doc": m.doc, "better": m.better });
    let rows = names.iter().map(counter).chain(METRICS.iter().map(metric)).collect();
    List { key: "counters", heads: &["name", "kind", "kernels", "unit", "doc"], rows }
}
