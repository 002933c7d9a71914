"""What library functions do to processes and values: one function per behaviour that models name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from cudalint.ir import nodes as ir
from cudalint.machine.behaviours import (
    accelerators,
    attributes,
    callables,
    channels,
    checkpoints,
    commands,
    copies,
    devices,
    engines,
    environment,
    environments,
    estimators,
    event_loops,
    exit_stacks,
    fork_launchers,
    gpu,
    keras,
    library_objects,
    lightning,
    loaders,
    modules,
    options,
    parallel,
    pools,
    processes,
    python,
    ranks,
    records,
    results,
    servers,
    spawned,
    start_methods,
    threads,
    whoami,
)
from cudalint.machine.behaviours.callees import library_self
from cudalint.machine.behaviours.outcomes import outcome_of
from cudalint.machine.frame import Call, Frame, Raised, Results
from cudalint.machine.interpreter import Machine
from cudalint.machine.outcome import Kind
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Atom, Ref, Tensor, Value, unknown

Behaviour = Callable[[Machine, Call], Results]

BEHAVIOURS: dict[str, Behaviour] = {
    "nothing": python.nothing,
    "identity": python.identity,
    "stop": python.stop,
    "partial": python.partial,
    "through": python.through,
    "compiled": python.compiled,
    "decorator": python.decorator_factory,
    "wraps": python.wraps,
    "wrapped": python.wrapped,
    "module.tensor": modules.module_tensor,
    "call": python.call_argument,
    "import-module": python.import_module,
    "cast": python.cast,
    "container": python.container,
    "dict": python.mapping,
    "defaultdict": python.default_mapping,
    "range": python.range_,
    "enumerate": python.enumerate_,
    "zip": python.zip_,
    "map": python.map_,
    "starmap": python.starmap,
    "filter": python.filter_,
    "reduce": python.reduce,
    "consume": python.consume,
    "next": python.next_,
    "iter": python.iter_,
    "getattr": attributes.getattr_,
    "copy": copies.copy,
    "copy.deep": copies.deepcopy,
    "lookup": attributes.lookup,
    "type": attributes.type_,
    "super": attributes.super_,
    "setattr": attributes.setattr_,
    "hasattr": attributes.hasattr_,
    "len": python.len_,
    "isinstance": python.isinstance_,
    "show": python.show,
    "list.method": python.list_method,
    "dict.method": python.dict_method,
    "str.method": python.str_method,
    "generator.method": python.generator_method,
    "argparse.parser": options.parser,
    "argparse.add": options.add_argument,
    "argparse.command": options.command,
    "argparse.defaults": options.set_defaults,
    "argparse.parse": options.parse_args,
    "builtins.contains": python.builtin_name,
    "environ.get": environment.environ_get,
    "environ.set": environment.environ_set,
    "environ.delete": environment.environ_delete,
    "environ.contains": environment.environ_contains,
    "environ.update": environment.environ_update,
    "gpu": gpu.effect,
    "tensor": gpu.factory,
    "like": gpu.like,
    "device": gpu.device,
    "move": gpu.move,
    "module": modules.module,
    "module.init": modules.module_base,
    "module.data": modules.module_data,
    "module.child": modules.module_child,
    "default.enter": devices.default_enter,
    "default.exit": devices.default_exit,
    "dataclass.field": records.field,
    "dataclass.replace": records.changed,
    "namespace": records.namespace,
    "namedtuple": records.named_tuple,
    "asdict": records.as_dict,
    "vars": records.variables,
    "object.new": records.blank,
    "type.call": records.construct,
    "cache": callables.cached,
    "reader": callables.reader,
    "reader.read": callables.read,
    "dispatch": callables.dispatching,
    "dispatch.call": callables.dispatch,
    "dispatch.register": callables.register,
    "dispatch.registered": callables.registered,
    "fresh-process": processes.fresh_process,
    "celery.app": servers.celery_app,
    "celery.task": servers.celery_task,
    "celery.worker": servers.celery_worker,
    "celery.task.bound": servers.celery_bound_task,
    "celery.settings": servers.celery_settings,
    "celery.signal": servers.signal_connect,
    "gunicorn.run": servers.gunicorn_run,
    "gunicorn.set": servers.gunicorn_set,
    "server.register": servers.register,
    "server.request": servers.server_request,
    "server.import": servers.import_application,
    "server.application": servers.web_application,
    "server.event": servers.on_event,
    "module.call": modules.module_call,
    "load": checkpoints.load,
    "save": checkpoints.save,
    "is-initialized": gpu.is_initialized,
    "bad-fork": gpu.bad_fork,
    "default-device": devices.default_device,
    "device.object": devices.device_object,
    "device.enter": devices.device_enter,
    "device.exit": devices.device_exit,
    "stream": devices.stream,
    "growth": devices.growth,
    "visible": devices.visible,
    "set-device": ranks.set_device,
    "method.set": start_methods.set_start_method,
    "method.context": start_methods.get_context,
    "method.get": start_methods.get_start_method,
    "method.preload": start_methods.forkserver_preload,
    "pool": pools.pool,
    "pool.subclass": pools.subclassed,
    "pool.map": pools.pool_map,
    "pool.once": pools.pool_once,
    "suppress": exit_stacks.suppress,
    "stack.enter": exit_stacks.enter_context,
    "stack.leave": exit_stacks.leave,
    "pool.apply": pools.pool_apply,
    "executor": pools.executor,
    "executor.loop": event_loops.run_in_executor,
    "thread.call": event_loops.to_thread,
    "future": results.future_result,
    "process": processes.process,
    "process.current": whoami.current_process,
    "process.parent": whoami.parent_process,
    "pid": whoami.pid,
    "loader.info": whoami.worker_info,
    "process.start": processes.process_start,
    "process.join": processes.process_join,
    "fork": processes.fork,
    "spawn": spawned.spawn,
    "fork-launcher": fork_launchers.fork_launcher,
    "parallel": parallel.parallel,
    "parallel.imported": parallel.imported,
    "parallel.call": parallel.parallel_call,
    "parallel.enter": parallel.parallel_enter,
    "parallel.exit": parallel.parallel_exit,
    "parallel.backend": parallel.parallel_backend,
    "parallel.backend.exit": parallel.parallel_backend_exit,
    "delayed": parallel.delayed,
    "delayed.task": parallel.joblib_task,
    "thread": threads.thread,
    "thread.start": threads.thread_start,
    "lock": channels.lock,
    "pipe": channels.pipe,
    "put": channels.put,
    "wait": channels.wait,
    "manager": processes.manager,
    "loader": loaders.loader,
    "loader.iter": loaders.loader_iter,
    "loader.worker": loaders.loader_worker,
    "dataset.tensors": loaders.tensor_dataset,
    "dataset.wrapped": loaders.wrapped_dataset,
    "dataset.transform": loaders.transform_dataset,
    "compose": loaders.compose,
    "compose.call": loaders.compose_call,
    "first-argument": loaders.apply_transform,
    "group": ranks.init,
    "group.rank": ranks.rank,
    "group.destroy": ranks.destroy,
    "group.initialized": ranks.is_initialized,
    "group.select": ranks.select,
    "collective": ranks.collective,
    "collective.object": ranks.object_collective,
    "barrier": ranks.barrier,
    "environ.preset": environment.environ_preset,
    "accelerator": accelerators.accelerator,
    "accelerator.prepare": accelerators.prepare,
    "command.plain": commands.plain,
    "command.option": commands.option,
    "command.with-option": commands.with_option,
    "command.group": commands.group,
    "command.group.function": commands.group_function,
    "command.add": commands.command,
    "command.group.add": commands.add_command,
    "command.group.run": commands.run_group,
    "search": estimators.search,
    "search.fit": estimators.search_fit,
    "search.validate": estimators.validate,
    "search.pipeline": estimators.pipeline,
    "search.pipeline.fit": estimators.pipeline_fit,
    "estimator": library_objects.estimator,
    "estimator.fit": library_objects.estimator_fit,
    "engine": engines.engine,
    "keras.dataset": keras.dataset,
    "keras.fit": keras.fit,
    "keras.model": keras.model,
    "text-pipe": engines.text_pipe,
    "text-pipe.add": engines.add_to_text_pipe,
    "text-pipe.worker": engines.text_pipe_worker,
    "placed": library_objects.placed,
    "transformers.arguments": library_objects.training_arguments,
    "transformers.trainer": library_objects.trainer,
    "transformers.train": library_objects.trainer_train,
    "trainer": lightning.trainer,
    "trainer.strategy": lightning.strategy,
    "trainer.fit": lightning.trainer_fit,
    "unknown-map": fork_launchers.unknown_map,
    "ddp": ranks.ddp,
    "environments": environments.environments,
    "environments.worker": environments.environment,
    "workers": environments.starts_workers,
    "cluster": environments.cluster,
    "thread.trials": threads.trials,
}


class LibraryBehaviours:
    """Dispatches calls of library functions to the behaviour that their model names."""

    def perform(self, machine: Machine, call: Call) -> Results:
        """Do what a model says."""
        behaviour = BEHAVIOURS.get(call.text("does"))
        if behaviour is None:
            return [(call.state, unknown("undone", call.site))]
        if not call.path.endswith(".__init__"):
            call.receiver = library_self(call)
        return behaviour(machine, call)

    def unmodelled(
        self,
        machine: Machine,
        path: str,
        args: list[Value],
        kwargs: dict[str, Value],
        state: State,
        frame: Frame,
        site: Site,
    ) -> Results:
        """A library function that no model names."""
        return python.unmodelled(machine, path, args, kwargs, state, frame, site)

    def unmodelled_method(
        self,
        machine: Machine,
        path: str,
        receiver: Atom,
        args: list[Value],
        kwargs: dict[str, Value],
        state: State,
        frame: Frame,
        site: Site,
    ) -> Results:
        """A method of a library value that no model names: on arrays it reads them."""
        if isinstance(receiver, Tensor):
            call = Call(state, frame, site, path, {"framework": receiver.framework}, args, kwargs, receiver)
            return gpu.like(machine, call)
        if isinstance(receiver, Ref) and gpu.placed_tensor(receiver, state) is not None:
            after = gpu.read(machine, receiver, state, frame, site, path.rpartition(".")[2] + "()")
            memory = gpu.placed_tensor(receiver, state)
            return [] if after is None else [(after, (memory,) if memory is not None else ())]
        return [(state, unknown("method", site, state.process.identity))]

    def tensor_attribute(
        self, machine: Machine, tensor: Tensor, name: str, state: State, frame: Frame, site: Site
    ) -> Results:
        """``tensor.name``."""
        return gpu.tensor_attribute(machine, tensor, name, state, frame, site)

    def tensor_data(
        self, machine: Machine, tensor: Tensor, what: str, state: State, frame: Frame, site: Site
    ) -> Results:
        """An operation that reads the data of a tensor."""
        return gpu.tensor_data(machine, tensor, what, state, frame, site)

    def missing_name(self, machine: Machine, name: str, state: State, frame: Frame, site: Site) -> Results:
        """A name that no scope binds: in a spawned child, perhaps one that only the main program sets."""
        launch = state.process.launch
        fresh = launch is not None and launch.method in ("spawn", "forkserver")
        if launch is None or not fresh or not machine.options.uses_gpu or state.process.doomed:
            return [(state, unknown("name", frame.module, name))]
        if machine.record.cut is not None or (frame.module, name) not in state.process.left_behind:
            return [(state, unknown("name", frame.module, name))]
        outcome = outcome_of(
            machine,
            Kind.MISSING_GLOBAL,
            launch.anchor,
            launch.failure,
            certain=launch.certain,
            effect=machine.chain(state, site, f"{name} is not defined in the child"),
            subject=name,
            condition=launch.condition,
            launch=launch,
        )
        if frame.tries > 0:
            return machine.fail(state, frame, Raised(outcome, ("NameError",)))
        machine.emit(outcome)
        state.process = replace(state.process, doomed=True)
        return [(state, unknown("name", frame.module, name))]

    def served(self, machine: Machine, state: State, module: str) -> None:
        """A server that is started from outside has imported a module."""
        servers.served(machine, state, module)

    def before_answer(self, machine: Machine, state: State, frame: Frame, function: ir.Function) -> list[State]:
        """What a web application runs before its first request."""
        return servers.before_answer(machine, state, frame, function)

    def process_ends(self, machine: Machine, state: State) -> None:
        """A process ends in this state."""
        ranks.ends(machine, state)
