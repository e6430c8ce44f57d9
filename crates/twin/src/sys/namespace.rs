//! Names of directories and files, and what happens to them.
//!
//! Rule: a name is looked up again after every sleep, as under the directory's lock: of two threads that make the same
//! name one makes it and the other finds it. A directory has its number by its name, and keeps it when it is removed, for one that is
//! made of that name again.
//! Abstracted: names of files are numbers; a directory that exists is found without a look at the disk.
//! Omitted: renaming, links.

use mm::vfs::{Handle, Need, Rmdir};
use sys::{Dir, Fd, FileName, OpenMode, Result, SysError};
use units::{Bytes, FileId};

use super::SysTwin;
use super::process::Directory;
use crate::world::World;

/// `NAME_MAX`: letters of one component of a path.
const NAME_MAX: usize = 255;
/// Names in one directory are numbered by 32 bits.
const NUMBER_MAX: u64 = u32::MAX as u64;

impl SysTwin {
    /// Repeats an operation until nothing is missing.
    pub(super) async fn until_satisfied<R>(
        &self,
        mut call: impl FnMut(&mut World, &mut sim::Ctl<World>) -> std::result::Result<R, Need>,
    ) -> Result<R> {
        loop {
            match self.task.ctx.with(&mut call) {
                Ok(result) => return Ok(result),
                Err(need) => self.satisfy(need).await?,
            }
        }
    }

    /// `mkdir -p`.
    pub(super) async fn make_directory(&self, path: &str) -> Result<Dir> {
        let root = self.task.ctx.with(|world, _| world.processes.root()).ok_or(SysError::NoEntry)?;
        let mut at = root;
        for name in path.split('/').filter(|name| !name.is_empty() && *name != ".") {
            if name == ".." || name.len() > NAME_MAX {
                return Err(SysError::Invalid);
            }
            at = self.until_satisfied(|world, ctl| subdirectory(world, ctl, at, name)).await??;
        }
        if at == root { Err(SysError::NoEntry) } else { Ok(at) }
    }

    pub(super) async fn open_file(&self, name: FileName, mode: OpenMode) -> Result<Fd> {
        let number = place_of(name)?;
        let opened = self.until_satisfied(|world, ctl| open(world, ctl, name.dir, number, mode)).await?;
        let handle = opened?;
        let seen = self.task.mm(|mm, _| mm.sample_write_errors(handle.file));
        Ok(self.descriptors(|files| {
            let fd = files.install(handle);
            files.keep_errors_seen(fd, seen);
            fd
        }))
    }

    pub(super) async fn stat_file(&self, name: FileName) -> Result<Bytes> {
        let number = place_of(name)?;
        let found = self.until_satisfied(|world, ctl| {
            let Some(file) = existing(world, ctl, name.dir, number)? else { return Ok(Err(SysError::NoEntry)) };
            world.enter(ctl, |mm, env| mm.vfs_stat(env, file))?;
            Ok(Ok(file))
        });
        Ok(self.size(found.await??))
    }

    pub(super) async fn unlink_file(&self, name: FileName) -> Result<()> {
        let number = place_of(name)?;
        self.until_satisfied(|world, ctl| {
            let Some(file) = existing(world, ctl, name.dir, number)? else { return Ok(Err(SysError::NoEntry)) };
            world.enter(ctl, |mm, env| mm.vfs_unlink(env, file))?;
            world.processes.set_name(name.dir, number, None);
            Ok(Ok(()))
        })
        .await?
    }

    /// `rmdir`.
    pub(super) async fn remove_directory(&self, dir: Dir) -> Result<()> {
        self.until_satisfied(|world, ctl| remove(world, ctl, dir)).await?
    }
}

/// Place of a name in its directory.
fn place_of(name: FileName) -> Result<u32> {
    if name.number > NUMBER_MAX { Err(SysError::Invalid) } else { Ok(name.number as u32) }
}

/// The directory of this name below another, made if it does not exist.
fn subdirectory(
    world: &mut World,
    ctl: &mut sim::Ctl<World>,
    parent: Dir,
    name: &str,
) -> std::result::Result<Result<Dir>, Need> {
    let Some((parent_id, directory)) = world.processes.directory(parent) else { return Ok(Err(SysError::NoEntry)) };
    let known = directory.below.get(name).copied();
    if let Some(found) = known.filter(|dir| world.processes.directory(*dir).is_some()) {
        return Ok(Ok(found));
    }
    let id = world.enter(ctl, |mm, env| mm.vfs_mkdir(env, parent_id))?;
    if let Some(removed) = known {
        world.processes.make_again(removed, id);
        return Ok(Ok(removed));
    }
    world.processes.directories.push(Directory::new(id));
    let made = Dir(world.processes.directories.len() as u32 - 1);
    world.processes.directories[parent.0 as usize].below.insert(name.into(), made);
    Ok(Ok(made))
}

/// Removes a directory that exists and is empty. The mount point stays.
fn remove(world: &mut World, ctl: &mut sim::Ctl<World>, dir: Dir) -> std::result::Result<Result<()>, Need> {
    let below_root = world.processes.root().is_some_and(|root| root != dir);
    let existing = world.processes.directory(dir).filter(|_| below_root);
    let Some((id, _)) = existing else { return Ok(Err(SysError::NoEntry)) };
    match world.enter(ctl, |mm, env| mm.vfs_rmdir(env, id))? {
        Rmdir::NotEmpty => Ok(Err(SysError::NotEmpty)),
        Rmdir::Done => {
            world.processes.remove_directory(dir);
            Ok(Ok(()))
        }
    }
}

/// The file of a name; one that does not exist is looked up in vain, which leaves a negative dentry.
fn existing(
    world: &mut World,
    ctl: &mut sim::Ctl<World>,
    dir: Dir,
    number: u32,
) -> std::result::Result<Option<FileId>, Need> {
    let Some((id, directory)) = world.processes.directory(dir) else { return Ok(None) };
    let known = world.processes.named(directory, number);
    if let Some(file) = known.filter(|file| world.mm.vfs_exists(*file)) {
        return Ok(Some(file));
    }
    let absent = world.enter(ctl, |mm, env| mm.vfs_lookup_absent(env, id, known))?;
    world.processes.set_name(dir, number, Some(absent));
    Ok(None)
}

/// Opens the file of a name, which is made if it does not exist and the mode says so.
fn open(
    world: &mut World,
    ctl: &mut sim::Ctl<World>,
    dir: Dir,
    number: u32,
    mode: OpenMode,
) -> std::result::Result<Result<Handle>, Need> {
    let Some((id, directory)) = world.processes.directory(dir) else { return Ok(Err(SysError::NoEntry)) };
    let known = world.processes.named(directory, number);
    let exists = known.is_some_and(|file| world.mm.vfs_exists(file));
    if !exists && mode == OpenMode::Existing {
        existing(world, ctl, dir, number)?;
        return Ok(Err(SysError::NoEntry));
    }
    let handle = world.enter(ctl, |mm, env| match known {
        Some(file) if exists => mm.vfs_open(env, file),
        Some(name) => mm.vfs_create_absent(env, name),
        None => mm.vfs_create(env, id),
    })?;
    world.processes.set_name(dir, number, Some(handle.file));
    if !exists {
        world.processes.set_end(handle.file, Bytes(0));
    }
    Ok(Ok(handle))
}
