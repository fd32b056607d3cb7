//! Shell completions and manual pages, both generated from the definitions of the commands.

use std::fs;
use std::io;
use std::path::PathBuf;

use clap::{Args, Command, CommandFactory};
use clap_complete::{Shell, generate};
use clap_mangen::Man;
use serde_json::json;

use crate::config::output_path;

use super::output::{print, print_bytes};
use super::{Cli, Failure};

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
    folder: Option<PathBuf>,
}

impl Completions {
    /// Prints the completion script.
    pub(super) fn print(&self) -> Result<(), Failure> {
        let mut script = Vec::new();
        generate(self.shell, &mut Cli::command(), "steward", &mut script);
        print_bytes(&script)
    }
}

impl Manual {
    /// Prints the pages of all commands, beginning with `steward`, in the form that `man -l -` reads. Or writes them into the
    /// folder, which is created if it does not exist.
    pub(super) fn print(&self, json: bool) -> Result<(), Failure> {
        let mut whole = Cli::command().disable_help_subcommand(true);
        whole.build();
        let mut pages = Vec::new();
        add_pages(&mut pages, whole)?;
        let Some(folder) = &self.folder else {
            let joined: Vec<u8> = pages.into_iter().flat_map(|(_, roff)| roff).collect();
            return print_bytes(&joined);
        };
        let written = fs::create_dir_all(folder).and_then(|()| {
            pages.iter().try_for_each(|(name, roff)| fs::write(folder.join(name), roff))
        });
        written.map_err(|error| Failure::Other(format!("{}: {error}", folder.display())))?;
        print(&json!({ "folder": folder.display().to_string(), "pages": pages.len() }), json)
    }
}

/// Adds the page of a command and those of its subcommands, each after the name of its file.
fn add_pages(pages: &mut Vec<(String, Vec<u8>)>, command: Command) -> io::Result<()> {
    let below: Vec<_> = command.get_subcommands().cloned().collect();
    let manual = Man::new(command).manual("Steward");
    let mut roff = Vec::new();
    manual.render(&mut roff)?;
    pages.push((manual.get_filename(), roff));
    below.into_iter().try_for_each(|command| add_pages(pages, command))
}
