"""What library functions do to processes and values: one function per effect that models name by ``does``."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from cudalint.ir import nodes as ir
from cudalint.machine.effects import command_line, plain, releases, stdlib
from cudalint.machine.effects.command_line import commands, configs, options, typed_options
from cudalint.machine.effects.concurrency import (
    channels,
    endings,
    environments,
    event_loops,
    joblib,
    lazy_tasks,
    managers,
    own_children,
    pools,
    process_identity,
    processes,
    results,
    runners,
    start_methods,
    threads,
)
from cudalint.machine.effects.frameworks import (
    accelerators,
    dali,
    engines,
    estimators,
    fabric,
    fork_launchers,
    isolated,
    keras,
    library_objects,
    lightning,
    pipelines,
    remote_tasks,
    sessions,
    spacy,
)
from cudalint.machine.effects.gpu import arrays, choices, cuda, current, defaults, devices, guesses, kernels, queries
from cudalint.machine.effects.receivers import library_of, library_self
from cudalint.machine.effects.servers import (
    celery,
    components,
    django,
    executors,
    gunicorn,
    handlers,
    jobs,
    outside,
    queues,
    sockets,
    web,
)
from cudalint.machine.effects.stdlib import (
    attributes,
    buffers,
    builtins,
    callables,
    computed,
    containers,
    context_variables,
    copies,
    environment,
    evaluated,
    exit_stacks,
    graphs,
    importing,
    iteration,
    judges,
    kept,
    kinships,
    line_ups,
    log_settings,
    logs,
    lookups,
    mixins,
    mocks,
    parametrized,
    patched,
    pickles,
    raised,
    records,
    regexes,
    settings,
    signals,
    suites,
    texts,
    trees,
)
from cudalint.machine.effects.torch import (
    augmenting,
    checkpoints,
    collating,
    datasets,
    hooks,
    loaders,
    modules,
    pinning,
    pipes,
    ranks,
    samplers,
    spawn,
)
from cudalint.machine.frame import Call, Frame, Results
from cudalint.machine.heap import Instance
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch import launching, lending, missing_globals
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Ref, Tensor, Value, unknown

LibraryEffect = Callable[[Machine, Call], Results]

EFFECTS: dict[str, LibraryEffect] = {
    "nothing": plain.nothing,
    "identity": plain.identity,
    "sentinel": plain.sentinel,
    "stop": plain.stop,
    "exit": endings.exits,
    "tree.map": trees.tree_map,
    "control": plain.control,
    "tests.run": plain.run_tests,
    "partial": callables.partial,
    "finalizer": callables.finalizer,
    "partial-method": callables.partial_method,
    "partial.kept": callables.kept_partial,
    "remembers": callables.made_of,
    "property": callables.property_,
    "method-kind": callables.method_kind,
    "gathered": event_loops.gathered,
    "config.load": configs.load,
    "config.composed": configs.composed,
    "config.configured": configs.configured,
    "environ.from-file": environment.environ_from_file,
    "settings.parser": settings.parser,
    "settings.read": settings.read_sections,
    "settings.section": settings.section,
    "settings.option": settings.option,
    "settings.changed": settings.changed,
    "settings.has": settings.has,
    "settings.mapping": settings.mapping,
    "settings.names": settings.names,
    "subclasses": records.subclasses,
    "weak": callables.weak,
    "held": callables.held,
    "held.called": callables.called_through,
    "chain": iteration.chain,
    "tee": iteration.tee,
    "groups": iteration.groups,
    "future.outcome": results.outcome_of_task,
    "future.callback": results.done_callback,
    "class.method": plain.class_method,
    "class.patched": patched.patched,
    "through": plain.through,
    "collate": collating.collate,
    "collate.add": collating.add,
    "compiled": callables.compiled,
    "decorator": plain.decorator_factory,
    "wraps": callables.wraps,
    "wrapped": callables.wrapped,
    "module.tensor": modules.module_tensor,
    "module.device": modules.module_device,
    "call": plain.call_argument,
    "at-exit": endings.at_exit,
    "not-at-exit": endings.not_at_exit,
    "import-module": importing.import_module,
    "module.at-path": importing.at_path,
    "module.listed": importing.listed,
    "module.of-spec": importing.of_specification,
    "module.run": importing.run_at_path,
    "module.run-program": importing.run_program,
    "module.enter": importing.enter,
    "module.imported": importing.is_imported,
    "cast": builtins.cast,
    "container": containers.container,
    "drawn": iteration.drawn,
    "dict": containers.dict_,
    "dict.chained": containers.chained,
    "counter": containers.counter,
    "defaultdict": containers.defaultdict,
    "range": iteration.range_,
    "enumerate": iteration.enumerate_,
    "zip": iteration.zip_,
    "version": texts.version,
    "cycle": iteration.cycle,
    "count": iteration.count,
    "islice": iteration.islice_,
    "repeat": iteration.repeat,
    "product": iteration.product,
    "map": iteration.map_,
    "starmap": iteration.starmap,
    "filter": iteration.filter_,
    "reduce": iteration.reduce,
    "consume": iteration.consume,
    "next": iteration.next_,
    "iter": iteration.iter_,
    "regex.item": regexes.item,
    "getattr": attributes.getattr_,
    "getattr.plain": attributes.plain_attribute,
    "copy": copies.copy,
    "copy.deep": copies.deepcopy,
    "lookup": attributes.lookup,
    "type": attributes.type_,
    "super": attributes.super_,
    "setattr": attributes.setattr_,
    "hasattr": attributes.hasattr_,
    "delattr": attributes.delattr_,
    "len": containers.len_,
    "isinstance": judges.isinstance_,
    "issubclass": judges.issubclass_,
    "isinstance-of-type": judges.of_type,
    "register-class": kinships.register,
    "set-item": containers.set_item,
    "argv": options.argv,
    "register-reducer": pickles.register,
    "is-callable": builtins.callable_,
    "is-class": builtins.is_class,
    "show": builtins.show,
    "list.method": containers.list_method,
    "context.copied": context_variables.copied,
    "context.run": context_variables.run,
    "context-variable": context_variables.make,
    "context-variable.get": context_variables.get,
    "context-variable.set": context_variables.set_,
    "context-variable.reset": context_variables.reset,
    "dict.init": containers.dict_init,
    "dict.wrap": containers.wrapper_init,
    "list.init": containers.list_init,
    "slice": containers.slice_,
    "dict.method": containers.dict_method,
    "str.template": texts.template,
    "str.method": texts.str_method,
    "buffer": buffers.buffer,
    "built-with": guesses.built_with,
    "buffer.contents": buffers.contents,
    "generator.enter": iteration.generator_enter,
    "generator.method": iteration.generator_method,
    "argparse.parser": options.parser,
    "argparse.add": options.add_argument,
    "flags": options.flags,
    "flags.define": options.define_flag,
    "argparse.command": options.command,
    "argparse.commands": options.commands,
    "argparse.defaults": options.set_defaults,
    "argparse.parse": options.parse_args,
    "argparse.record": typed_options.record,
    "options.parser": typed_options.parser,
    "options.parsed": typed_options.parsed,
    "options.own": typed_options.own,
    "config.create": configs.create,
    "config.of-arguments": configs.of_arguments,
    "config.structured": configs.structured,
    "config.item": configs.item,
    "config.set": configs.set_item,
    "config.dotlist": configs.dotlist,
    "config.merge": configs.merge,
    "config.plain": configs.plain,
    "config.select": configs.select,
    "config.overlay": configs.overlay,
    "builtins.contains": builtins.builtin_name,
    "environ.get": environment.environ_get,
    "environ.read": environment.environ_read,
    "environ.set": environment.environ_set,
    "copied-environ": environment.environ_copy,
    "environ.joined": environment.environ_joined,
    "environ.delete": environment.environ_delete,
    "environ.contains": environment.environ_contains,
    "environ.update": environment.environ_update,
    "gpu": queries.gpu_call,
    "kernel": kernels.decorate,
    "kernel.made": kernels.make,
    "suite": suites.suite,
    "suite.add": suites.add,
    "suite.case": suites.case,
    "suite.load": suites.load,
    "suite.run": suites.run,
    "graph": graphs.sorter,
    "graph.add": graphs.add,
    "graph.order": graphs.order,
    "pipeline.make": pipelines.make,
    "pipeline.run": pipelines.run,
    "tensor": arrays.factory,
    "like": arrays.like,
    "device": arrays.device,
    "move": arrays.move,
    "module": modules.module,
    "module.hold": modules.module_hold,
    "module.init": modules.module_base,
    "module.part": modules.module_part,
    "module.data": modules.module_data,
    "module.child": modules.module_child,
    "default-cpu.enter": defaults.framework_enter,
    "default-cpu.exit": defaults.framework_exit,
    "default-cpu.choose": queries.choose_default,
    "default-cpu.set": defaults.framework_setting,
    "default.enter": devices.default_enter,
    "default.exit": devices.default_exit,
    "dataclass.field": records.field,
    "dataclass.fields": records.fields,
    "type-arguments": records.type_arguments,
    "type-hints": records.type_hints,
    "written-bases": records.written_bases,
    "is-dataclass": records.is_record,
    "dataclass.replace": records.changed,
    "namespace": records.namespace,
    "namedtuple": records.named_tuple,
    "asdict": records.as_dict,
    "record.validated": records.validated,
    "vars": records.variables,
    "names": lookups.names_of_frame,
    "eval": evaluated.evaluated,
    "exec": evaluated.executed,
    "timed": evaluated.timed,
    "signal.handle": signals.handle,
    "signal.raised": signals.raised,
    "signal.killed": signals.killed,
    "called-later": kept.later,
    "schedule": kept.enter,
    "schedule.run": kept.run,
    "selector.register": kept.watch,
    "selector.select": kept.ready,
    "warned": kept.warned,
    "log.child": logs.child,
    "log.attach": logs.attach,
    "log.configure": logs.configure,
    "log.record": logs.record,
    "log.adapter": logs.adapter,
    "log.adapted": logs.adapted,
    "log.settings": log_settings.configure,
    "log.format": logs.formats,
    "log.queue": logs.queue_handler,
    "log.enabled": logs.enabled,
    "members": lookups.members,
    "signature": lookups.signature,
    "located": lookups.by_dotted_name,
    "instantiate": lookups.instantiate,
    "command.object": lookups.command_object,
    "command.loop": lookups.command_loop,
    "events.loop": kept.events,
    "device.module": queries.device_module,
    "object.new": records.blank,
    "type.call": records.construct,
    "cache": callables.cached,
    "cache.clear": callables.forgotten,
    "managed": callables.managed,
    "mock": mocks.mock,
    "mock.call": mocks.called,
    "mock.enter": mocks.enter,
    "mock.variables": mocks.patch_variables,
    "mock.variables.enter": mocks.enter_variables,
    "mock.variables.exit": mocks.leave_variables,
    "mock.exit": mocks.leave,
    "mock.patch": mocks.patch,
    "test.fixture": parametrized.fixture,
    "test.parametrize": parametrized.parametrize,
    "test.row": parametrized.row,
    "test.skip": mocks.skip,
    "reader": callables.reader,
    "reader.read": callables.read,
    "dispatch": callables.dispatching,
    "dispatch.call": callables.dispatch,
    "dispatch.register": callables.register,
    "dispatch.registered": callables.registered,
    "fresh-process": processes.fresh_process,
    "becomes-program": processes.become_program,
    "celery.app": celery.celery_app,
    "celery.discover": celery.celery_discover,
    "celery.task": celery.celery_task,
    "celery.worker": celery.celery_worker,
    "celery.register": celery.celery_register,
    "celery.task.bound": celery.celery_bound_task,
    "celery.settings": celery.celery_settings,
    "celery.signal": celery.signal_connect,
    "gunicorn.run": gunicorn.gunicorn_run,
    "gunicorn.set": gunicorn.gunicorn_set,
    "django.setup": django.setup,
    "django.as-view": django.as_view,
    "django.view": django.view,
    "django.manage": django.manage,
    "django.task": django.run_task,
    "django.route": django.route,
    "django.include": django.include,
    "django.request": django.request,
    "server.register": handlers.register,
    "server.request": gunicorn.server_request,
    "server.started": gunicorn.server_started,
    "server.import": gunicorn.import_application,
    "socket.answer": sockets.answer,
    "socket.application": sockets.make_for_application,
    "socket.finish": sockets.finish,
    "socket.function": sockets.function,
    "socket.handler": sockets.handler,
    "socket.process": sockets.process,
    "socket.serve": sockets.serve,
    "socket.server": sockets.make,
    "server.application": web.web_application,
    "server.class": web.application_of_class,
    "server.event": web.on_event,
    "server.run": web.run,
    "answer.streamed": web.streamed,
    "server.routes": web.routes,
    "server.fork": web.fork,
    "server.annotated": web.annotated,
    "server.depends": web.depends,
    "server.item": web.item,
    "server.set-item": web.set_item,
    "server.component": plain.nothing,
    "queue.worker": queues.queue_worker,
    "queue.enqueue": queues.enqueue,
    "executor.configured": executors.configured,
    "job": jobs.job,
    "job.decorator": jobs.decorated,
    "jobs.run": jobs.run,
    "queue.work": queues.work,
    "hook": hooks.register,
    "hook.remove": hooks.remove,
    "module.call": modules.module_call,
    "module.offload": modules.offload,
    "load": checkpoints.load,
    "load.item": checkpoints.item,
    "save": checkpoints.save,
    "is-initialized": queries.is_initialized,
    "bad-fork": queries.bad_fork,
    "default-device": devices.default_device,
    "device.object": devices.device_object,
    "device.enter": devices.device_enter,
    "device.exit": devices.device_exit,
    "stream": devices.stream,
    "stream.scope": devices.stream_scope,
    "event.record": devices.record,
    "growth": devices.growth,
    "growth.configured": devices.growth_configured,
    "visible": devices.visible,
    "set-device": ranks.set_device,
    "method.set": start_methods.set_start_method,
    "method.context": start_methods.get_context,
    "method.all": start_methods.all_start_methods,
    "method.get": start_methods.get_start_method,
    "method.preload": start_methods.forkserver_preload,
    "pool": pools.pool,
    "pool.subclass": pools.subclassed,
    "pool.map": pools.pool_map,
    "pool.once": pools.pool_once,
    "pool.handed": pools.handed_to_pool,
    "pool.decorator": pools.submitting,
    "suppress": exit_stacks.suppress,
    "stack.enter": exit_stacks.enter_context,
    "stack.callback": exit_stacks.callback,
    "mixin.get": mixins.get,
    "mixin.contains": mixins.contains,
    "mixin.setdefault": mixins.set_default,
    "mixin.pop": mixins.pop,
    "mixin.keys": mixins.keys,
    "mixin.values": mixins.values,
    "mixin.update": mixins.update,
    "stack.pop_all": exit_stacks.pop_all,
    "stack.push": exit_stacks.push,
    "stack.leave": exit_stacks.leave,
    "closing": exit_stacks.closing,
    "closing.leave": exit_stacks.closing_leave,
    "queue.local": line_ups.queue,
    "queue.local.put": line_ups.put,
    "queue.local.get": line_ups.get,
    "event.local": line_ups.event,
    "event.local.give": line_ups.give,
    "event.local.wait": line_ups.wait,
    "event.local.meet": line_ups.meet,
    "queue.local.size": line_ups.size,
    "event.local.asked": line_ups.asked,
    "heap": line_ups.heap,
    "heap.push": line_ups.heap,
    "pool.apply": pools.pool_apply,
    "executor": pools.executor,
    "executor.loop": event_loops.run_in_executor,
    "thread.call": event_loops.to_thread,
    "pool.end": pools.workers_end,
    "future": results.future_result,
    "futures.wait": results.wait,
    "process": processes.process,
    "process.current": process_identity.current_process,
    "process.parent": process_identity.parent_process,
    "pickle.dump": pickles.dumps,
    "pickle.load": pickles.loads,
    "pid": process_identity.pid,
    "loader.info": process_identity.worker_info,
    "process.start": processes.process_start,
    "run-target": processes.run_target,
    "process.alive": processes.process_alive,
    "process.join": processes.process_join,
    "fork": processes.fork,
    "fork.hooks": processes.at_fork,
    "fork.hooked": processes.after_fork,
    "backward": queries.backward,
    "spawn": spawn.spawn,
    "spawn.join": spawn.ranks_join,
    "remote": remote_tasks.remote,
    "remote.decorator": remote_tasks.decorated,
    "remote.given": remote_tasks.given,
    "remote.gpus": remote_tasks.given_gpus,
    "remote.options": remote_tasks.options,
    "remote.map": remote_tasks.map_rows,
    "remote.run": remote_tasks.run,
    "remote.start": remote_tasks.start,
    "runner": runners.runner,
    "runner.flow": runners.made_flow,
    "runner.serve": runners.serve,
    "runner.map": runners.mapped,
    "runner.submit": runners.submit,
    "runner.task": runners.made_task,
    "isolated": isolated.isolating,
    "isolated.decorator": isolated.decorated,
    "isolated.call": isolated.isolated,
    "isolated.now": isolated.now,
    "spawn.elastic": spawn.elastic,
    "spawn.agent": spawn.agent,
    "dataset.from-generator": fork_launchers.from_generator,
    "fork-launcher": fork_launchers.fork_launcher,
    "generate": fork_launchers.generate,
    "parallel": joblib.parallel,
    "parallel.imported": joblib.imported,
    "parallel.call": joblib.parallel_call,
    "parallel.enter": joblib.parallel_enter,
    "parallel.exit": joblib.parallel_exit,
    "parallel.backend": joblib.parallel_backend,
    "parallel.backend.exit": joblib.parallel_backend_exit,
    "delayed": joblib.delayed,
    "delayed.task": joblib.joblib_task,
    "lazy.task": lazy_tasks.write_down,
    "lazy.compute": lazy_tasks.compute,
    "thread": threads.thread,
    "thread.alive": threads.thread_alive,
    "thread.cancel": threads.thread_cancel,
    "thread.join": threads.thread_join,
    "thread.start": threads.thread_start,
    "lock": channels.lock,
    "pipe": channels.pipe,
    "connection": channels.connection,
    "put": channels.put,
    "wait": channels.wait,
    "value.get": channels.get_value,
    "value.set": channels.set_value,
    "manager": managers.manager,
    "manager.base": managers.base,
    "manager.register": managers.register,
    "manager.start": managers.begin,
    "manager.make": managers.make,
    "manager.ask": managers.ask,
    "manager.serve": managers.serve,
    "manager.store": managers.store,
    "manager.item": managers.item,
    "manager.each": managers.each,
    "loader": loaders.loader,
    "pin": pinning.pin,
    "loader.iter": loaders.loader_iter,
    "loader.sampling": loaders.sampling_loader,
    "loader.worker": loaders.loader_worker,
    "dataset.item": datasets.dataset_item,
    "dataset.part": datasets.dataset_part,
    "dataset.stacked": datasets.stacked_dataset,
    "dataset.tensors": datasets.tensor_dataset,
    "dataset.wrapped": datasets.wrapped_dataset,
    "dataset.transform": datasets.transform_dataset,
    "dataset.with-transform": datasets.with_transform,
    "dataset.mapped": datasets.mapped_dataset,
    "dataset.stages": datasets.staged_dataset,
    "loader.eager": loaders.eager_loader,
    "loader.served": loaders.served_loader,
    "loader.service": loaders.reading_service,
    "loader.items": loaders.items_loader,
    "loader.set": loaders.set_on_loader,
    "loader.mapping": pipes.mapping_node,
    "loader.cut": pipes.cut_loader,
    "dataset.moved": pipes.moved,
    "dataset.fetched": pipes.fetched,
    "own-method": plain.own_method,
    "dataset.with-format": datasets.with_format,
    "augment": augmenting.augment,
    "compose": datasets.compose,
    "compose.call": datasets.compose_call,
    "first-argument": datasets.apply_transform,
    "sampler.listed": samplers.listed,
    "sampler.drawn": samplers.drawn,
    "sampler.generator": samplers.generator,
    "group": ranks.init,
    "group.new": ranks.new_group,
    "group.rank": ranks.rank,
    "group.size": ranks.size,
    "group.backend": ranks.backend,
    "group.destroy": ranks.destroy,
    "group.initialized": ranks.is_initialized,
    "group.select": ranks.select,
    "collective": ranks.collective,
    "collective.batch": ranks.batched,
    "collective.object": ranks.object_collective,
    "barrier": ranks.barrier,
    "environ.preset": environment.environ_preset,
    "environ.worker": environment.worker_visible,
    "environ.settings": environment.environ_settings,
    "accelerator": accelerators.accelerator,
    "accelerator.device": accelerators.accelerator_device,
    "accelerator.prepare": accelerators.prepare,
    "command.context": commands.with_context,
    "command.current-context": commands.current_context,
    "command.plain": commands.plain,
    "command.option": commands.option,
    "command.words": commands.words,
    "command.given": commands.given,
    "command.handed": commands.handed,
    "command.invoke": commands.invoke,
    "command.run": commands.run,
    "command.with-option": commands.with_option,
    "command.group": commands.group,
    "command.group.function": commands.group_function,
    "command.add": commands.command,
    "command.call": commands.call_function,
    "command.wrapped": commands.wrapped,
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
    "dali.define": dali.pipeline_def,
    "dali.make": dali.make,
    "dali.pipeline": dali.pipeline,
    "dali.source": dali.source,
    "dali.start": dali.start,
    "dali.build": dali.build,
    "keras.dataset": keras.dataset,
    "keras.fit": keras.fit,
    "keras.model": keras.model,
    "keras.generated": keras.generated_rows,
    "keras.rows": keras.rows,
    "session": sessions.session,
    "session.configuration": sessions.configuration,
    "text-pipe": spacy.text_pipe,
    "text-pipe.add": spacy.add_to_text_pipe,
    "text-pipe.worker": spacy.text_pipe_worker,
    "lent": library_objects.lent,
    "reports": library_objects.reports,
    "placed.part": library_objects.part_of_placed,
    "own-instance": library_objects.own_instance,
    "placed": library_objects.placed,
    "transformers.arguments": library_objects.training_arguments,
    "transformers.trainer": library_objects.trainer,
    "transformers.train": library_objects.trainer_train,
    "transformers.evaluate": library_objects.trainer_evaluate,
    "trainer": lightning.trainer,
    "trainer.strategy": lightning.strategy,
    "trainer.fit": lightning.trainer_fit,
    "trainer.loops": lightning.loops,
    "trainer.rank": lightning.trains_in_rank,
    "fabric": fabric.fabric,
    "fabric.launch": fabric.launch,
    "fabric.device": fabric.device,
    "unknown-map": fork_launchers.unknown_map,
    "ddp": ranks.ddp,
    "environments": environments.environments,
    "environments.worker": environments.environment,
    "environments.of": environments.environments_of,
    "environments.copies": environments.copied_environments,
    "workers": environments.starts_workers,
    "spread": environments.spread,
    "cluster": lazy_tasks.cluster,
    "component": environments.component,
    "components": environments.components,
    "component.kept": environments.keep_component,
    "thread.trials": threads.trials,
}

# The effects that neither look at the process nor change it, by the module that holds them; and exceptions.
_NEUTRAL = (*tuple(f"{home.__name__}." for home in (stdlib, command_line)), plain.__name__)
# What these do goes by the methods of the instance that they are called on.
_FOR_HEIRS = "collections.abc."
_OF_PROCESSES = frozenset({environment.__name__})


class LibraryEffects:
    """Dispatches calls of library functions to the effect that their model names."""

    def may_consult(self, call: Call) -> bool:
        """Whether what a model says may look at the process or change it."""
        effect = EFFECTS.get(call.text("does"))
        return effect is not None and (effect.__module__ in _OF_PROCESSES or not effect.__module__.startswith(_NEUTRAL))

    def perform(self, machine: Machine, call: Call) -> Results:
        """Do what a model says."""
        if "releases" in call.spec:
            apart = releases.apart(machine, call)
            done = (self._perform(machine, one) if said else self.unmodelled(machine, one) for one, said in apart)
            return [result for results in done for result in results]
        return self._perform(machine, call)

    def _perform(self, machine: Machine, call: Call) -> Results:
        effect = EFFECTS.get(call.text("does"))
        if effect is None:
            return [(call.state, unknown("undone", call.site))]
        if call.flag("fixes-method"):
            launching.fix_default(machine, call.state, library_of(call), call.site, call.label)
        known = computed.computed(machine, call)
        if known is not None:
            return known
        if not call.path.endswith(".__init__") and not call.path.startswith(_FOR_HEIRS):
            call.receiver = library_self(call)
        calls = [one for each in guesses.as_built(call) for one in choices.apart(machine, each)]
        results = [result for one in calls for result in EFFECTS[one.text("does")](machine, one)]
        if "hooks" in call.spec:
            results = hooks.around(machine, call, results)
        return own_children.started(machine, call, results) if "children" in call.spec else results

    def unmodelled(self, machine: Machine, call: Call) -> Results:
        """A library function, or a method of a library value, that no model names."""
        if machine.library.traits.has(call.path, "changes-file"):
            machine.makes_file(call.state)
        read = settings.function(machine, call) if call.receiver is None else None
        if read is not None:
            return settings.hooked(machine, call, read)
        current.guess(machine, call.state, call.path, call.site)
        known = computed.computed(machine, call)
        known = raised.made(machine, call) if known is None else known
        known = regexes.asked(machine, call) if known is None else known
        if known is not None:
            return known
        if call.receiver is None:
            return plain.unmodelled(machine, call)
        return plain.unmodelled_method(machine, call, call.receiver)

    def tensor_attribute(
        self, machine: Machine, tensor: Tensor, name: str, state: State, frame: Frame, site: Site
    ) -> Results:
        """``tensor.name``."""
        return arrays.tensor_attribute(machine, tensor, name, state, frame, site)

    def tensor_data(
        self, machine: Machine, tensor: Tensor, what: str, state: State, frame: Frame, site: Site
    ) -> Results:
        """An operation that reads the data of a tensor."""
        return arrays.tensor_data(machine, tensor, what, state, frame, site)

    def unknown_called(self, machine: Machine, name: str, state: State, site: Site) -> None:
        """A method of this name of something unknown."""
        current.guess(machine, state, name, site)

    def unknown_method(self, machine: Machine, call: Call) -> Value | None:
        """A method of something unknown, of which more is known than that it is called."""
        return settings.method(machine, call)

    def after_telling(self, machine: Machine, call: Call) -> list[State]:
        """The states after a method of something unknown was told of a GPU, by which it may compute there."""
        return guesses.after_making(machine, call)

    def missing_name(self, machine: Machine, name: str, state: State, frame: Frame, site: Site) -> Results:
        """A name that no scope binds."""
        return missing_globals.missing_name(machine, name, state, frame, site)

    def missing_part(
        self, machine: Machine, owner: Ref, key: Hashable, state: State, frame: Frame, site: Site
    ) -> Results | None:
        """An object lacks an item or attribute, or holds None there."""
        is_object = isinstance(state.get(owner), Instance) and isinstance(key, str)
        if is_object and attributes.has(machine, owner, str(key), state) is None:
            # Its class sets attributes whose names are not seen.
            return None
        return missing_globals.missing_part(machine, owner, key, state, frame, site)

    def given_away(self, machine: Machine, values: Iterable[Value], state: State) -> None:
        """What nobody knows has these values from here on."""
        channels.given_away(machine, values, state)

    def served(self, machine: Machine, state: State, module: str) -> None:
        """A server that is started from outside has imported a module."""
        outside.served(machine, state, module)

    def before_answer(
        self, machine: Machine, state: State, frame: Frame, function: ir.Function
    ) -> list[tuple[State, dict[str, Value]]]:
        """What a web application runs before its first request, and what that request gives a function."""
        return web.before_answer(machine, state, frame, function)

    def before_method(self, machine: Machine, instance: Value, method: str, state: State, frame: Frame) -> list[State]:
        """What a server calls of an instance that it made before it calls this method."""
        return components.before_method(machine, instance, method, state, frame)

    def unpickled(self, machine: Machine, state: State, frame: Frame, site: Site, original: Tensor) -> None:
        """A process has unpickled a copy of what lies on a GPU: it lies there as well, whatever device is selected."""
        what = "unpickling what it is sent"
        cuda.touch(machine, state, frame, site, original.framework, "init", what, original.device, context=True)

    def process_ends(self, machine: Machine, state: State) -> None:
        """A process ends in this state."""
        ranks.ends(machine, state)
        lending.ends(machine, state)
        endings.ends(machine, state)
        signals.ends(machine, state)
        environment.ends(machine, state)
        hooks.ends(machine, state)
