//! Runs a scenario file and prints its JSON.
use gargalo_scenario::build::{RunOptions, run};
use gargalo_scenario::{Origin, parse};
fn main() {
    let path = std::path::PathBuf::from(std::env::args().nth(1).unwrap());
    let text = std::fs::read_to_string(&path).unwrap();
    let out_dir = std::env::args().nth(2).map(std::path::PathBuf::from);
    let scenario = match parse(&text, &Origin { path: Some(path) }, &[]) {
        Ok(s) => s,
        Err(e) => panic!("{}", e.render(false)),
    };
    let start = std::time::Instant::now();
    let out = run(&scenario, RunOptions { output: out_dir, ..RunOptions::default() }).unwrap();
    println!("{:#}", out.json);
    if std::env::var_os("EVENTS").is_some() {
        eprintln!("{:?}", out.tables.events);
    }
    eprintln!("{:?}", start.elapsed());
}
