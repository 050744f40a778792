//! What the generator and the driver ask of the operating system beyond sockets.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::num::NonZeroU64;
use std::os::fd::AsRawFd;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::set_current_timer_slack;
use socket2::{Domain, Protocol, Socket, Type};

/// Raises the soft limit on open files to the hard one.
///
/// # Errors
/// The system refused.
pub fn raise_open_files_limit() -> io::Result<()> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    Ok(setrlimit(
        Resource::Nofile,
        Rlimit {
            current: maximum,
            maximum,
        },
    )?)
}

/// Asks the kernel to wake the calling thread on time: the default slack of 50 µs is half a period
/// at 10,000 requests a second. A refusal only makes the timing coarser.
pub fn tighten_timers() {
    let _ = set_current_timer_slack(NonZeroU64::new(1_000));
}

/// Begins to connect a non-blocking socket from a source address, and gives the error if the system
/// refused at once. `receive_buffer_bytes` limits what the kernel takes for a client that does not
/// read; 0 leaves it.
///
/// # Errors
/// A local system call failed, for example for want of descriptors.
pub fn begin_to_connect(
    source: Ipv4Addr,
    target: SocketAddr,
    receive_buffer_bytes: usize,
) -> io::Result<(TcpStream, Option<io::Error>)> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    if receive_buffer_bytes > 0 {
        socket.set_recv_buffer_size(receive_buffer_bytes)?;
    }
    choose_port_at_connect(&socket)?;
    socket.bind(&SocketAddrV4::new(source, 0).into())?;
    let error = socket.connect(&target.into()).err();
    let refused = error.filter(|error| error.raw_os_error() != Some(libc::EINPROGRESS));
    Ok((socket.into(), refused))
}

/// Sends the whole request on a connection that [`begin_to_connect`] has begun, once it can be
/// written.
///
/// # Errors
/// The connection was refused or is broken.
pub fn send_first(mut stream: &TcpStream, request: &[u8]) -> io::Result<()> {
    if let Some(error) = stream.take_error()? {
        return Err(error);
    }
    match stream.write(request)? {
        bytes if bytes == request.len() => Ok(()),
        _ => Err(io::Error::other("short write")),
    }
}

/// Takes bytes that have arrived on a non-blocking connection; `None` if there are none.
///
/// # Errors
/// The connection is broken, or the server has closed it.
pub fn receive(mut stream: &TcpStream, room: &mut [u8]) -> io::Result<Option<usize>> {
    loop {
        return match stream.read(room) {
            Ok(0) => Err(io::Error::other("closed by the server")),
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
    }
}

/// Lets a later bind fix only the source address: the kernel then chooses the port at connect,
/// when the destination is known, and ports in use towards another server are no obstacle.
///
/// # Errors
/// The system refused.
fn choose_port_at_connect(socket: &impl AsRawFd) -> io::Result<()> {
    let on: libc::c_int = 1;
    let bytes = libc::socklen_t::try_from(size_of_val(&on)).expect("four bytes");
    // SAFETY: `on` is valid for the call and `bytes` is its size.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_BIND_ADDRESS_NO_PORT,
            (&raw const on).cast(),
            bytes,
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// CPU time of this process so far, all threads, in nanoseconds.
pub fn own_cpu_ns() -> u64 {
    cpu_ns(std::process::id()).unwrap_or(0)
}

/// CPU time of the process `pid` so far, all threads including ended ones, in nanoseconds: what
/// `utime + stime` of /proc shows, without its rounding to 10 ms.
///
/// # Errors
/// There is no such process.
pub fn cpu_ns(pid: u32) -> io::Result<u64> {
    let pid = libc::pid_t::try_from(pid).map_err(io::Error::other)?;
    let mut clock: libc::clockid_t = 0;
    // SAFETY: `clock` is valid for the call.
    let refused = unsafe { libc::clock_getcpuclockid(pid, &raw mut clock) };
    if refused != 0 {
        return Err(io::Error::from_raw_os_error(refused));
    }
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is valid for the call.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } < 0 {
        return Err(io::Error::last_os_error());
    }
    let seconds = u64::try_from(time.tv_sec).map_err(io::Error::other)?;
    let nanoseconds = u64::try_from(time.tv_nsec).map_err(io::Error::other)?;
    Ok(seconds * 1_000_000_000 + nanoseconds)
}
