//! Completions for shells, and manual pages: both read off the commands themselves.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Command, CommandFactory};
use clap_complete::{Shell, generate};
use clap_mangen::Man;

use super::Cli;

/// `steward completions`.
#[derive(Args)]
pub(super) struct Completions {
    /// The shell that reads it.
    shell: Shell,
}

/// `steward man`.
#[derive(Args)]
pub(super) struct Manual {
    /// A folder to write the pages into, a file each, such as /usr/local/share/man/man1.
    #[arg(value_name = "FOLDER")]
    pub(super) folder: Option<PathBuf>,
}

/// A manual page.
pub(super) struct Page {
    name: String,
    roff: Vec<u8>,
}

impl Completions {
    /// The script.
    pub(super) fn script(&self) -> Vec<u8> {
        let mut script = Vec::new();
        generate(self.shell, &mut Cli::command(), "steward", &mut script);
        script
    }
}

/// A page for every command, that of `steward` first.
pub(super) fn pages() -> io::Result<Vec<Page>> {
    let mut whole = Cli::command().disable_help_subcommand(true);
    whole.build();
    let mut pages = Vec::new();
    add(&mut pages, whole)?;
    Ok(pages)
}

fn add(pages: &mut Vec<Page>, command: Command) -> io::Result<()> {
    let below: Vec<_> = command.get_subcommands().cloned().collect();
    let manual = Man::new(command).manual("Steward");
    let mut roff = Vec::new();
    manual.render(&mut roff)?;
    pages.push(Page { name: manual.get_filename(), roff });
    below.into_iter().try_for_each(|command| add(pages, command))
}

/// All pages, one behind the other, as `man -l -` shows them.
pub(super) fn in_a_row(pages: &[Page]) -> Vec<u8> {
    pages.iter().flat_map(|page| page.roff.iter().copied()).collect()
}

/// Writes the pages into a folder, which is made where it is not there.
pub(super) fn write(pages: &[Page], folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    pages.iter().try_for_each(|page| fs::write(folder.join(&page.name), &page.roff))
}
