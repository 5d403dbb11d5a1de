//! Diagnostics of a scenario: position, problem and likely fix.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

use crate::printable::printable;
use miette::{GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, SourceCode};
use textwrap::{WordSeparator, WordSplitter};

/// Where a scenario came from.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// The file; paths of traces are relative to its directory. `None`: relative to the current one.
    pub path: Option<PathBuf>,
}

/// The position of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Bytes of the file.
    File(Range<usize>),
    /// The override of this index.
    Override(usize),
    /// Not in a text.
    Nowhere,
}

/// One problem of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The dotted path of the key that is wrong or missing, such as `flows.0.start`; `None` if the problem has no key,
    /// as in a text that is not TOML. A part that contains a dot or a quote is quoted.
    pub path: Option<String>,
    /// The problem, in one sentence that names the key.
    pub message: String,
    /// The file, or the override as given on the command line.
    pub file: String,
    /// Line, from 1; 0 if the problem has no position in a file, as in an override.
    pub line: usize,
    /// Column in characters, from 1; 0 if the problem has no position in a file.
    pub column: usize,
    /// The label of the marked text.
    pub label: String,
    /// The likely fix.
    pub help: Option<String>,
    place: Place,
}

/// All problems of a scenario, in the order of the text.
#[derive(Clone, Debug)]
pub struct Diagnostics {
    file: String,
    text: String,
    overrides: Vec<String>,
    list: Vec<Diagnostic>,
}

/// Most problems that are reported.
const MOST: usize = 50;
/// Columns within which the problems are drawn; a line of the file may be longer.
const COLUMNS: usize = 80;

impl Diagnostics {
    pub(crate) fn new(origin: &Origin, text: &str, overrides: &[(String, String)]) -> Self {
        let file = match &origin.path {
            Some(p) => p.display().to_string(),
            None => "scenario".to_owned(),
        };
        Self {
            file: printable(&file),
            text: printable(text),
            overrides: overrides
                .iter()
                .map(|(k, v)| printable(&format!("--set {k}={v}")))
                .collect(),
            list: Vec::new(),
        }
    }

    /// Adds a problem of the key at `path`; an empty path if it belongs to no key.
    pub(crate) fn add(
        &mut self,
        place: Place,
        path: &str,
        label: impl Into<String>,
        message: impl Into<String>,
        help: Option<String>,
    ) {
        let (file, line, column) = match &place {
            Place::File(span) => {
                let (line, column) = position(&self.text, span.start);
                (self.file.clone(), line, column)
            }
            Place::Override(i) => {
                let text = self.overrides.get(*i).cloned();
                (text.unwrap_or_default(), 0, 0)
            }
            Place::Nowhere => (self.file.clone(), 0, 0),
        };
        let new = Diagnostic {
            path: (!path.is_empty()).then(|| printable(path)),
            message: printable(&message.into()),
            file,
            line,
            column,
            label: printable(&label.into()),
            help: help.map(|h| printable(&h)),
            place,
        };
        // A problem of an override for all items of a list is reported once.
        let is_known = |old: &Diagnostic| {
            (&old.message, &old.label, &old.help, &old.place)
                == (&new.message, &new.label, &new.help, &new.place)
        };
        if self.list.len() < MOST && !self.list.iter().any(is_known) {
            self.list.push(new);
        }
    }

    /// The problems in the order of the text.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.list.iter()
    }

    /// Number of problems.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are no problems.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(crate) fn sort(&mut self) {
        self.list.sort_by_key(|d| (d.line, d.column));
    }

    /// Renders the problems as text with the lines that they are in.
    pub fn render(&self, color: bool) -> String {
        let theme = if color {
            GraphicalTheme::unicode()
        } else {
            GraphicalTheme::unicode_nocolor()
        };
        let handler = GraphicalReportHandler::new_themed(theme)
            .with_width(COLUMNS)
            // Not after a slash or a hyphen: "Mbit/s" and "drop-tail" stay whole.
            .with_word_separator(WordSeparator::AsciiSpace)
            .with_word_splitter(WordSplitter::NoHyphenation)
            .with_context_lines(1)
            .with_links(false);
        let mut out = String::new();
        for d in &self.list {
            let (text, span) = match &d.place {
                Place::File(span) => (self.text.as_str(), Some(span.clone())),
                Place::Override(_) => (d.file.as_str(), Some(0..d.file.len())),
                Place::Nowhere => ("", None),
            };
            let name = match &d.place {
                Place::Override(_) => "command line",
                _ => &self.file,
            };
            let report = Report {
                diagnostic: d,
                source: NamedSource::new(name, text.to_owned()),
                span: span.map(|s| clamp(text, s)),
            };
            // A report that cannot be rendered is still printed as a line.
            let before = out.len();
            if handler.render_report(&mut out, &report).is_err() {
                out.truncate(before);
                out.push_str(&format!("{d}\n"));
            }
        }
        out
    }
}

/// Line and column (in characters), both from 1, of a byte offset.
fn position(text: &str, offset: usize) -> (usize, usize) {
    let start = clamp(text, offset..offset).start;
    let before = &text[..start];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |l| l.chars().count()) + 1;
    (line, column)
}

/// Limits the span to the text and to character boundaries.
fn clamp(text: &str, span: Range<usize>) -> Range<usize> {
    let floor = |mut i: usize| {
        i = i.min(text.len());
        while !text.is_char_boundary(i) {
            i -= 1;
        }
        i
    };
    let start = floor(span.start);
    // Of a table over many lines only the first is shown.
    let end = floor(span.end.max(start));
    let end = text[start..end].find('\n').map_or(end, |n| start + n);
    start..end
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::File(_) => write!(f, "{}:{}:{}: ", self.file, self.line, self.column)?,
            _ => write!(f, "{}: ", self.file)?,
        }
        f.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(f, " (help: {help})"),
            None => Ok(()),
        }
    }
}
impl std::error::Error for Diagnostic {}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, d) in self.list.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            d.fmt(f)?;
        }
        Ok(())
    }
}
impl std::error::Error for Diagnostics {}

/// A diagnostic with its text, as miette renders it.
#[derive(Debug)]
struct Report<'a> {
    diagnostic: &'a Diagnostic,
    source: NamedSource<String>,
    span: Option<Range<usize>>,
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.diagnostic.message)
    }
}
impl std::error::Error for Report<'_> {}

impl miette::Diagnostic for Report<'_> {
    fn help(&self) -> Option<Box<dyn fmt::Display + '_>> {
        let help = self.diagnostic.help.as_ref()?;
        Some(Box::new(help))
    }
    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.span.as_ref().map(|_| &self.source as &dyn SourceCode)
    }
    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let span = self.span.clone()?;
        let label = (!self.diagnostic.label.is_empty()).then(|| self.diagnostic.label.clone());
        Some(Box::new(std::iter::once(LabeledSpan::new(
            label,
            span.start,
            span.len(),
        ))))
    }
}
