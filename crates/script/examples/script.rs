//! Runs scripts: `script [--kernel] [KEY=VALUE...] FILE...`; with `--kernel` inside `unshare -Urn`.

use std::path::Path;

use gargalo_script::ast::Only;
use gargalo_script::{Choices, Source, Verdict, run_source};
use gargalo_settings::Files;

fn main() {
    let mut choices = Choices::new(Only::Ours);
    let mut files = Vec::new();
    for arg in std::env::args().skip(1) {
        match arg.as_str() {
            "--kernel" => choices.stack = Only::Kernel,
            option if option.contains('=') => {
                let pair = option.split_once('=').unwrap_or_default();
                choices.gargalo.push((pair.0.to_owned(), pair.1.to_owned()));
            }
            file => files.push(file.to_owned()),
        }
    }
    let one = |file: &String| {
        let text = Files::text(Path::new(file)).unwrap_or_default();
        let directory = Path::new(file).parent().map(Into::into);
        let source = Source { text, directory };
        (file.clone(), run_source(&source, &choices).verdict)
    };
    let verdicts: Vec<_> = std::thread::scope(|scope| {
        let started: Vec<_> = files.iter().map(|f| scope.spawn(move || one(f))).collect();
        started.into_iter().filter_map(|s| s.join().ok()).collect()
    });
    for (file, verdict) in verdicts {
        match verdict {
            Verdict::Passed => println!("ok   {file}"),
            Verdict::Unsupported(fault) => println!("BAD  {file}:{fault}"),
            Verdict::Broken { message } => println!("SYS  {file}: {message}"),
            Verdict::Failed(m) => {
                println!("FAIL {file}:{}: expected {}", m.at.line, m.expected);
                println!("     came {}", m.came);
                m.packets.iter().for_each(|p| println!("       {p}"));
            }
        }
    }
}
