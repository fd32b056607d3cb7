//! Shell completions and manual pages, both generated from the definitions of the commands.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Command, CommandFactory};
use clap_complete::{Shell, generate};
use clap_mangen::Man;

use crate::config::output_path;

use super::Cli;

/// `steward completions`.
#[derive(Args)]
pub(super) struct Completions {
    /// The shell that reads the script.
    shell: Shell,
}

/// `steward man`.
#[derive(Args)]
pub(super) struct Manual {
    /// A folder for the pages, one file each, such as /usr/local/share/man/man1. By default they are printed.
    #[arg(value_name = "FOLDER", value_parser = output_path())]
    pub(super) folder: Option<PathBuf>,
}

/// A manual page.
pub(super) struct ManPage {
    name: String,
    roff: Vec<u8>,
}

impl Completions {
    /// Returns the completion script.
    pub(super) fn script(&self) -> Vec<u8> {
        let mut script = Vec::new();
        generate(self.shell, &mut Cli::command(), "steward", &mut script);
        script
    }
}

/// Returns the pages of all commands, beginning with `steward`.
pub(super) fn pages() -> io::Result<Vec<ManPage>> {
    let mut whole = Cli::command().disable_help_subcommand(true);
    whole.build();
    let mut pages = Vec::new();
    add_pages(&mut pages, whole)?;
    Ok(pages)
}

fn add_pages(pages: &mut Vec<ManPage>, command: Command) -> io::Result<()> {
    let below: Vec<_> = command.get_subcommands().cloned().collect();
    let manual = Man::new(command).manual("Steward");
    let mut roff = Vec::new();
    manual.render(&mut roff)?;
    pages.push(ManPage { name: manual.get_filename(), roff });
    below.into_iter().try_for_each(|command| add_pages(pages, command))
}

/// Joins all pages, in the form that `man -l -` reads.
pub(super) fn concatenate(pages: &[ManPage]) -> Vec<u8> {
    pages.iter().flat_map(|page| page.roff.iter().copied()).collect()
}

/// Writes the pages into a folder, which is created if it does not exist.
pub(super) fn write(pages: &[ManPage], folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    pages.iter().try_for_each(|page| fs::write(folder.join(&page.name), &page.roff))
}
